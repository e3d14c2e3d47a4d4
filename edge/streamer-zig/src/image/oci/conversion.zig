//! Makes the disk of a machine of a container image, in two passes over its layers: the first reads
//! their headers, checks all digests and merges the tree; the second writes the contents of the
//! files that are left, in the order in which the layers have them. Memory holds the tree, never a
//! file. The same layers and size give the same bytes.

const std = @import("std");
const base = @import("base");
const Archive = @import("archive.zig");
const fault_module = @import("fault.zig");
const FileTree = @import("../ext4/file_tree.zig");
const LayerStream = @import("layer_stream.zig");
const Lists = @import("lists.zig");
const machine = @import("machine.zig");
const merge = @import("merge.zig");
const Plan = @import("../ext4/plan.zig");
const Sink = @import("../ext4/sink.zig");
const TarReader = @import("tar.zig");
const Writer = @import("../ext4/writer.zig");
const Allocator = std.mem.Allocator;
const Digest = LayerStream.Digest;
const Fault = fault_module.Fault;
const Inode = FileTree.Inode;
const Sha256 = base.Sha256;

/// Unpacked bytes of all layers, unless the size of the disk is given.
const unpacked_default_max = 32 << 30;
const part_size = 1 << 20;
/// Names the layout of what is written: a change of the writer is a change of the bytes.
const writer_name = "bootfarm ext4 1";

pub const Options = struct {
    /// Bytes of the disk.
    size: ?u64 = null,
    platform: ?[]const u8 = null,
    needs: machine.Needs = .{},
    limits: FileTree.Limits = .{},
    is_canceled: *const std.atomic.Value(bool),
};

pub const Conversion = @This();

/// Freed as a whole by its owner.
arena: Allocator,
options: Options,
/// What a fault is about.
subject: fault_module.Subject,
image: Lists.Image,
tree: FileTree,
plan: Plan,
/// Of all layers.
digest: Digest,
stream: *LayerStream,

/// Reads the layers and plans the disk. After a fault, `subject` says what it is about. Must not
/// move afterwards.
pub fn prepare(
    conversion: *Conversion,
    arena: Allocator,
    archive: *const Archive,
    options: Options,
) Fault!void {
    conversion.* = .{
        .arena = arena,
        .options = options,
        .subject = .{},
        .image = undefined,
        .tree = try .init(arena, options.limits),
        .plan = undefined,
        .digest = undefined,
        .stream = try arena.create(LayerStream),
    };
    const lists: Lists = .{
        .archive = archive,
        .arena = arena,
        .wanted = options.platform,
        .subject = &conversion.subject,
    };
    conversion.image = try lists.read();
    try conversion.mergeLayers();
    try machine.check(&conversion.tree, options.needs, conversion.tree.at(FileTree.root).mtime);
    conversion.plan.make(arena, &conversion.tree, .{ .size = options.size }) catch |fault| {
        const failed = if (conversion.plan.failed) |index| conversion.nameOf(index) else "";
        conversion.subject.set("{s}", .{failed});
        return fault;
    };
}

/// Identifies the bytes of the disk: equal identities mean equal bytes.
pub fn identity(conversion: *const Conversion) Digest {
    var sha: Sha256 = .init(.{});
    sha.update(writer_name);
    sha.update(&conversion.digest);
    var size: [8]u8 = undefined;
    std.mem.writeInt(u64, &size, conversion.plan.size, .little);
    sha.update(&size);
    return sha.finalResult();
}

/// Writes the disk.
pub fn write(conversion: *Conversion, sink: Sink) Fault!void {
    const writer: Writer = .init(&conversion.plan, conversion.digest, sink);
    try writer.writeMetadata();
    const buffer = try conversion.arena.alloc(u8, part_size);
    var rest = conversion.plan.contents;
    while (rest.len > 0) {
        const layer = conversion.tree.at(rest[0]).layer;
        var count: usize = 1;
        while (count < rest.len and conversion.tree.at(rest[count]).layer == layer) count += 1;
        try conversion.writeLayer(&writer, layer, rest[0..count], buffer);
        rest = rest[count..];
    }
    conversion.subject = .{};
}

fn mergeLayers(conversion: *Conversion) Fault!void {
    var unpacked_left = conversion.options.size orelse unpacked_default_max;
    var sha: Sha256 = .init(.{});
    var scratch: std.heap.ArenaAllocator = .init(conversion.arena);
    defer scratch.deinit();
    const layer_stream = conversion.stream;
    for (conversion.image.layers, 0..) |*blob, layer| {
        sha.update(&blob.diff_id);
        conversion.subject = .{ .layer = @intCast(layer + 1) };
        try layer_stream.open(blob, unpacked_left);
        var tar: TarReader = .{ .reader = &layer_stream.interface, .arena = &scratch };
        while (tar.next() catch |fault| return layer_stream.faultOf(fault)) |entry| {
            if (conversion.options.is_canceled.load(.monotonic)) return error.Canceled;
            conversion.subject.set("{s}", .{entry.path});
            try merge.apply(&conversion.tree, &entry, @intCast(layer));
        }
        conversion.subject = .{ .layer = @intCast(layer + 1) };
        try layer_stream.finish();
        unpacked_left -= layer_stream.unpacked;
    }
    conversion.subject = .{};
    conversion.digest = sha.finalResult();
}

/// Writes the contents that a layer has, which come in this order.
fn writeLayer(
    conversion: *Conversion,
    writer: *const Writer,
    layer: u32,
    contents: []const u32,
    buffer: []u8,
) Fault!void {
    const stream = conversion.stream;
    conversion.subject = .{ .layer = layer + 1 };
    // Counted in the first pass.
    try stream.open(&conversion.image.layers[layer], std.math.maxInt(u64));
    var position: u64 = 0;
    for (contents) |index| {
        const inode = conversion.tree.at(index);
        stream.interface.discardAll64(inode.offset - position) catch
            return stream.faultOf(error.ReadFailed);
        position = inode.offset;
        const whole = [_]FileTree.Segment{.{ .offset = 0, .size = inode.size }};
        for (inode.segments orelse &whole) |segment| {
            try conversion.copy(writer, inode, segment, buffer);
            position += segment.size;
        }
    }
    // The file may have changed since the first pass.
    try stream.finish();
}

fn copy(
    conversion: *Conversion,
    writer: *const Writer,
    inode: *const Inode,
    segment: FileTree.Segment,
    buffer: []u8,
) Fault!void {
    var done: u64 = 0;
    while (done < segment.size) {
        if (conversion.options.is_canceled.load(.monotonic)) return error.Canceled;
        const part = buffer[0..@intCast(@min(buffer.len, segment.size - done))];
        conversion.stream.interface.readSliceAll(part) catch
            return conversion.stream.faultOf(error.ReadFailed);
        try writer.writeContent(inode, segment.offset + done, part);
        done += part.len;
    }
}

/// One of the names of an inode, for messages.
fn nameOf(conversion: *const Conversion, wanted: u32) []const u8 {
    for (conversion.tree.inodes.items) |*inode| {
        for (inode.children.keys(), inode.children.values()) |name, child|
            if (child.inode == wanted) return name;
    }
    return "";
}
