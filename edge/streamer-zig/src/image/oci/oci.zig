//! Container images (`docker save`, `podman save`, OCI layouts) as disks of machines, made without
//! root rights, mounts, other programs or a network. Archives are untrusted: every number is
//! checked, every loop ends, and memory and output are bounded.
//! docs/decisions/0062-container-images.md says what is read and why ext4 is written so.

pub const Archive = @import("archive.zig");
pub const Conversion = @import("conversion.zig");
pub const fault = @import("fault.zig");
pub const Fault = fault.Fault;
pub const FileReader = @import("file_reader.zig");
pub const FileTree = @import("../ext4/file_tree.zig");
pub const Layout = @import("../ext4/layout.zig");
pub const machine = @import("machine.zig");
pub const Sink = @import("../ext4/sink.zig");
pub const TarReader = @import("tar.zig");
pub const test_archive = @import("test_archive.zig");

test {
    _ = @import("access_list.zig");
    _ = Archive;
    _ = Conversion;
    _ = @import("conversion_test.zig");
    _ = @import("../crc32c.zig");
    _ = @import("../ext4/extent_tree.zig");
    _ = fault;
    _ = FileTree;
    _ = Layout;
    _ = machine;
    _ = @import("pax.zig");
    _ = @import("sparse.zig");
    _ = TarReader;
    _ = @import("../ext4/xattr.zig");
}
