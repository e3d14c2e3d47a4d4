//! Module `store`; ../../../docs/ARCHITECTURE.md says what belongs here.

test {}
