//! Which tests may run at once.
//!
//! cargo's harness runs as many tests at once as there are processors. A test that judges a
//! measured time holds [`alone`]; one that keeps a processor busy for more than some tenths of a
//! second holds [`busy`] and so runs beside others of its kind but not beside the former. Both come
//! first in a test, before anything is started. All other tests may run at any time. Contention
//! from outside of the test run is left to `trial`.

use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

static PROCESSORS: RwLock<()> = RwLock::new(());

/// No other test keeps a processor busy while this is held.
pub fn alone() -> RwLockWriteGuard<'static, ()> {
    PROCESSORS.write().unwrap_or_else(PoisonError::into_inner)
}

/// No test measures while this is held.
pub fn busy() -> RwLockReadGuard<'static, ()> {
    PROCESSORS.read().unwrap_or_else(PoisonError::into_inner)
}
