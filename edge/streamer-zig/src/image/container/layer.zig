//! One file of an image: its format, and where it has the bytes of its disk.

const std = @import("std");
const extent_module = @import("extent.zig");
const Fault = @import("fault.zig").Fault;
const File = @import("file.zig");
const ParentLink = @import("parent_link.zig");
const Qcow2 = @import("qcow2.zig");
const signature = @import("signature.zig");
const Vhd = @import("vhd.zig");
const Vhdx = @import("vhdx.zig");
const Vmdk = @import("vmdk.zig");
const Allocator = std.mem.Allocator;
const Extent = extent_module.Extent;
const Format = signature.Format;

pub const Layer = @This();

file: File,
container: Container,
/// Bytes of the disk.
size: u64,
/// No byte in this range of the disk is the layer's own; spares `nextData` the search.
known_from: u64 = 0,
known_to: u64 = 0,

pub const Container = union(enum) { raw, vhd: Vhd, vhdx: Vhdx, qcow2: Qcow2, vmdk: Vmdk };

/// Throws `NotReadable` for a format that is recognized only.
pub fn open(gpa: Allocator, file: File, format: Format) Fault!Layer {
    const container: Container = switch (format) {
        .raw => .raw,
        .vhd => .{ .vhd = try .open(&file) },
        .vhdx => .{ .vhdx = try .open(gpa, &file) },
        .qcow2 => .{ .qcow2 = try .open(&file) },
        .vmdk => .{ .vmdk = try .open(&file) },
        else => return error.NotReadable,
    };
    return .{ .file = file, .container = container, .size = switch (container) {
        .raw => file.size,
        .vhd => |*vhd| vhd.disk_size,
        .vhdx => |*vhdx| vhdx.metadata.disk_size,
        .qcow2 => |*qcow2| qcow2.disk_size,
        .vmdk => |*vmdk| vmdk.disk_size,
    } };
}

pub fn close(layer: *Layer, gpa: Allocator) void {
    switch (layer.container) {
        .vhdx => |*vhdx| vhdx.close(gpa),
        .raw, .vhd, .qcow2, .vmdk => {},
    }
}

/// Null if the layer is a whole disk.
pub fn parentLink(layer: *const Layer) ?*const ParentLink {
    return switch (layer.container) {
        .raw => null,
        .vhd => |*vhd| vhd.parentLink(),
        .vhdx => |*vhdx| vhdx.parentLink(),
        .qcow2 => |*qcow2| qcow2.parentLink(),
        .vmdk => |*vmdk| vmdk.parentLink(),
    };
}

/// What a difference names its parent by; null for formats without.
pub fn identity(layer: *const Layer) ?ParentLink.Identity {
    return switch (layer.container) {
        .raw, .qcow2 => null,
        .vhd => |*vhd| vhd.identity,
        .vhdx => |*vhdx| vhdx.identity,
        .vmdk => |*vmdk| vmdk.identity,
    };
}

/// Finds where the bytes from `offset` are. The answer may reach beyond `size` bytes, and never
/// ends before one. `offset` and `size` are within the disk.
pub fn extentAt(layer: *const Layer, offset: u64, size: u64) Fault!Extent {
    std.debug.assert(size > 0 and offset < layer.size);
    const extent: Extent = switch (layer.container) {
        .raw => .{ .size = size, .content = .{ .file = offset } },
        .vhd => |*vhd| try vhd.extentAt(&layer.file, offset, size),
        .vhdx => |*vhdx| try vhdx.extentAt(&layer.file, offset, size),
        .qcow2 => |*qcow2| try qcow2.extentAt(&layer.file, offset, size),
        .vmdk => |*vmdk| try vmdk.extentAt(&layer.file, offset, size),
    };
    std.debug.assert(extent.size > 0);
    return extent;
}

/// Reads what `extentAt` has found in the file.
pub fn readFile(layer: *const Layer, buffer: []u8, location: u64) Fault!void {
    switch (layer.container) {
        .vhdx => |*vhdx| try vhdx.bytes.read(&layer.file, buffer, location),
        .raw, .vhd, .qcow2, .vmdk => try layer.file.read(buffer, location),
    }
}

/// Returns the first byte at or after `offset` that the layer itself may have, or its size. Holes
/// of the file count as zeros. One thread at a time calls it.
pub fn nextData(layer: *Layer, offset: u64) u64 {
    if (offset >= layer.size) return layer.size;
    if (offset >= layer.known_from and offset < layer.known_to) return layer.known_to;
    const found = layer.searchData(offset);
    if (found > offset) {
        layer.known_from = offset;
        layer.known_to = found;
    }
    return found;
}

fn searchData(layer: *const Layer, offset: u64) u64 {
    var at = offset;
    while (at < layer.size) {
        // The read of this byte reports the fault.
        const extent = layer.extentAt(at, layer.size - at) catch return at;
        switch (extent.content) {
            .zeros, .parent => {},
            .compressed => return at,
            .file => |location| {
                const hole_size = layer.holeAt(location);
                if (hole_size < extent.size) return @min(at + hole_size, layer.size);
            },
        }
        at +|= extent.size;
    }
    return layer.size;
}

/// Bytes from `location` of the file that are surely zeros.
fn holeAt(layer: *const Layer, location: u64) u64 {
    switch (layer.container) {
        // Its log may have more for the place.
        .vhdx => |*vhdx| if (vhdx.bytes.replay.end > 0) return 0,
        .raw, .vhd, .qcow2, .vmdk => {},
    }
    if (location >= layer.file.size) return 0;
    return layer.file.nextData(location) - location;
}
