package tuner

import "math"

// tunedBatches is the number of batches at which the time-uniform bound is tightest: pruning is worth most
// when it comes early.
const tunedBatches = 4

// anytime is how far above the truth the mean of n independent values of standard deviation sd may lie by
// chance, at any n at once: the chance that the mean ever leaves this bound, however often and whenever one
// looks, is at most alpha. A fixed bound looked at after each window would be left much more often.
//
// It is the one-sided normal mixture boundary of Robbins ("Statistical methods related to the law of the
// iterated logarithm", Annals of Mathematical Statistics 41(5), 1970) in the closed form of Howard, Ramdas,
// McAuliffe and Sekhon ("Time-uniform, nonparametric, nonasymptotic confidence sequences", Annals of
// Statistics 49(2), 2021), for the sum S of values with variance process v:
//
//	P(exists n: S_n >= sqrt(2 (v+rho) log(1 + sqrt((v+rho)/rho) / (2 alpha)))) <= alpha
//
// rho sets where it is tightest: v at tunedBatches over 2 log(1/2alpha) + log(1 + 2 log(1/2alpha)), as there.
func anytime(n int, sd, alpha float64) float64 {
	if n < 1 {
		return math.Inf(1)
	}
	if sd <= 0 {
		return 0
	}
	far := 2 * math.Log(1/(2*alpha))
	rho := tunedBatches * sd * sd / (far + math.Log(1+far))
	v := float64(n)*sd*sd + rho
	return math.Sqrt(2*v*math.Log(1+math.Sqrt(v/rho)/(2*alpha))) / float64(n)
}
