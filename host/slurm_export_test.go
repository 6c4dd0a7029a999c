package host

// BatchScript is batchScript for tests outside the package.
var BatchScript = batchScript
