//! Module `media`: boot media for sites whose DHCP cannot be changed, as one image for discs and
//! USB sticks. It arranges bytes; the caller reads files and reports to people.

pub const image = @import("image.zig");
pub const ipxe_script = @import("ipxe_script.zig");
pub const system_files = @import("system_files.zig");

test {
    _ = image;
    _ = ipxe_script;
    _ = system_files;
    _ = @import("image_test.zig");
    _ = @import("el_torito.zig");
    _ = @import("fat.zig");
    _ = @import("fat_directory.zig");
    _ = @import("iso9660.zig");
    _ = @import("mbr.zig");
}
