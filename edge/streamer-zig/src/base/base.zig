//! Module `base`; ../../../docs/ARCHITECTURE.md says what belongs here.

test {}
