package physics_test

// worlds are all of them, each made anew.
func worlds() []*world {
	return append(
		serverWorlds(),
		invertedWorld(), deadWorld(), middleWorld(), settledWorld(), coupledWorld(),
		growingWorld(), plainEnvWorld(), crashWorld(), switchWorld(), dialWorld(), hopelessWorld(), movedLineWorld(),
		overfullWorld(), misledWorld(), namelessWorld(),
	)
}
