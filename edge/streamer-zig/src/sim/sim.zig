//! Module `sim`; ../../../docs/ARCHITECTURE.md says what belongs here.

test {}
