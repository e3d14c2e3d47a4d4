//! Where a file system lies on the disk, for whoever adds its files to a map: in one piece, or as a
//! logical volume in segments.

const std = @import("std");
const Builder = @import("builder.zig");
const lvm = @import("../lvm/lvm.zig");

pub const Place = @This();

builder: *Builder,
/// Byte of the disk at which the volume begins, if it has no segments.
first: u64,
segments: []const lvm.LogicalVolume.Segment,
/// Such as "ext4".
system: []const u8,
/// Such as "partition 1"; empty for a file system that fills the disk.
label: []const u8,

pub const Error = Builder.Error;

/// Longest name of an area; a volume's name has at most 255 bytes.
const area_size_max = 512;

/// Names bytes of the volume, from `offset` on.
pub fn add(place: *const Place, offset: u64, size: u64, name: u32) Error!void {
    if (place.segments.len == 0) return place.builder.add(place.first +| offset, size, name);
    const end = offset +| size;
    for (place.segments) |segment| {
        const first = @max(offset, segment.first);
        const until = @min(end, segment.first +| segment.size);
        if (first >= until) continue;
        const at = segment.on_disk +| (first - segment.first);
        try place.builder.add(at, until - first, name);
    }
}

/// Returns the name of something that is no file, such as "ext4 journal (partition 1)".
pub fn addArea(place: *const Place, what: []const u8) Error!u32 {
    return place.addNamed(.area, what);
}

pub fn addNamed(
    place: *const Place,
    kind: @import("file_map.zig").Kind,
    what: []const u8,
) Error!u32 {
    var buffer: [area_size_max]u8 = undefined;
    var writer: std.Io.Writer = .fixed(&buffer);
    // A name that does not fit is cut.
    if (place.system.len > 0) writer.print("{s} ", .{place.system}) catch {};
    writer.print("{s}", .{what}) catch {};
    if (place.label.len > 0) writer.print(" ({s})", .{place.label}) catch {};
    return place.builder.addRoot(kind, writer.buffered());
}

/// Names what lies in nothing else of the volume.
pub fn addGround(place: *const Place, size: u64, name: u32) Error!void {
    if (place.segments.len == 0) return place.builder.addGround(place.first, size, name);
    for (place.segments) |segment| try place.builder.addGround(segment.on_disk, segment.size, name);
}
