//! The file that a loader's script requests right before it starts the kernel. Nothing else shows
//! when that is: a kernel that starts sends no packet. The boot goes on without the answer. For
//! PXELINUX there is none: its configuration has no commands.

pub const name = "start";

/// GRUB runs it as a script, in which an empty line does nothing; iPXE drops it.
pub const bytes = "\n";

/// How long iPXE waits for the answer. The edge has answered it before, and so within a round trip.
pub const timeout_ms = 2000;
