//! Sessions, plans, states and the kernel interface.
