module supervisor

go 1.25

require go.bytecodealliance.org/pkg v0.2.3

// The same types and runtime, but with a package `async` that an unmodified Go can run; see wit/async. The build
// creates it.
replace go.bytecodealliance.org/pkg => ../pkg
