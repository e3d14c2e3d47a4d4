//! Module `core`; ../../../docs/ARCHITECTURE.md says what belongs here.

test {}
