package trial

// SetPatience shortens every least real time of the package. Only TestMain calls it.
func SetPatience(factor float64) { patience = factor }
