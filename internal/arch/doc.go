// Package arch holds the rules about which package may import which. It has no code of its own:
// its test reads the imports of every package and fails on an arrow that points up, on an outside
// library used outside the package that owns it, and on a package without a doc.go.
package arch
