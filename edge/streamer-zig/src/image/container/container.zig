//! Images that hold a disk in a format of their own, read without other programs: VHD, VHDX,
//! qcow2, VMDK, and raw ones, all as one disk (`Chain`). Files are untrusted: every place and size
//! is checked against the file before it is read, every loop ends, and memory is bounded.
//! docs/decisions/0060-image-formats.md says what is read and what is not.

pub const Chain = @import("chain.zig");
pub const fault = @import("fault.zig");
pub const Fault = fault.Fault;
pub const File = @import("file.zig");
pub const Format = signature.Format;
pub const MemoryFile = File.MemoryFile;
pub const layers_max = Chain.layers_max;
pub const signature = @import("signature.zig");
pub const StreamGuard = @import("stream_guard.zig");
/// Images for tests and the fuzzer.
pub const test_images = @import("test_images.zig");
pub const test_vhdx = @import("test_vhdx.zig");

test {
    _ = Chain;
    _ = @import("chain_test.zig");
    _ = @import("extent.zig");
    _ = File;
    _ = @import("layer.zig");
    _ = @import("parent_link.zig");
    _ = signature;
    _ = StreamGuard;
    _ = @import("unpack.zig");
    _ = @import("vhdx_numbers.zig");
}
