//! A provider as it is asked: the kernel's side, the guest's loop, HTTP and TLS, against a server that does what no
//! honest one does. The guest is a thread here and the proxy a few lines; with both as they are in earnest see the
//! tests of `fluffy` itself.

mod answers;
mod guests;
mod hostile;
mod scene;
