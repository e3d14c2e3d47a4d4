//! Module `initramfs`: what a device runs between its kernel's start and its root disk, as an archive that the kernel unpacks.
//! It chooses and arranges; reading files and telling people about them is its caller's part.

pub const archive = @import("archive.zig");
pub const elf = @import("elf.zig");
pub const module_choice = @import("module_choice.zig");
pub const ModuleTable = @import("module_table.zig").ModuleTable;
pub const unpack = @import("unpack.zig").unpack;
pub const module_table = @import("module_table.zig");

test {
    _ = archive;
    _ = elf;
    _ = module_choice;
    _ = module_table;
    _ = @import("cpio.zig");
    _ = @import("unpack.zig");
}
