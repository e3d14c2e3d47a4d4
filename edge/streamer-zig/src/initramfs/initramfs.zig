//! Module `initramfs`: builds the archive that a device runs between its kernel's start and its
//! root disk. It selects and arranges files; the caller reads them and reports to people.

pub const archive = @import("archive.zig");
pub const elf = @import("elf.zig");
pub const module_choice = @import("module_choice.zig");
pub const ModuleTable = @import("module_table.zig");
pub const unpack = @import("unpack.zig").unpack;
pub const module_table = @import("module_table.zig");

test {
    _ = archive;
    _ = elf;
    _ = module_choice;
    _ = @import("module_alias.zig");
    _ = module_table;
    _ = @import("cpio.zig");
    _ = @import("unpack.zig");
}
