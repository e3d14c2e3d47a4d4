//! The write layers below a store's directory, by owner: their names, a list of them, and their
//! removal.

const std = @import("std");
const base = @import("base");
const Files = @import("../files/files.zig");
const layer_head = @import("head.zig");
const WriteLayer = @import("write_layer.zig");

const Uuid = base.Uuid;

pub const parent = "layers";

/// The key of the layer of one device above one version of one vDisk.
pub const Owner = struct {
    class: layer_head.Class,
    device_id: Uuid,
    /// Zeros for a disk without a vDisk.
    vdisk_id: Uuid,
};

/// Returns the directory name of a layer that outlives its process. A device has one persistent
/// write cache, whatever it boots, and one private image of each vDisk.
pub fn nameOf(owner: Owner) Uuid {
    if (owner.class != .private) return owner.device_id;
    var hash: base.Sha256 = .init(.{});
    hash.update("bootfarm private image");
    hash.update(&owner.device_id.bytes);
    hash.update(&owner.vdisk_id.bytes);
    return .fromRandom(hash.finalResult()[0..16].*);
}

pub fn dirOf(name: Uuid, into: *Files.Name) []const u8 {
    // It has the same length.
    return std.mem.print(into, parent ++ "/{f}", .{name}) catch unreachable;
}

pub const LayerInfo = struct {
    /// Valid until the next call.
    name: []const u8,
    head: HeadError!layer_head.Head,

    pub const HeadError = Files.Error || layer_head.Problem;
};

/// Lists all layers in the order of their names.
pub const LayerIterator = struct {
    files: Files,
    name: Files.Name = undefined,
    size: usize = 0,

    pub fn next(walk: *LayerIterator) Files.Error!?LayerInfo {
        const name = walk.files.nextName(parent, walk.name[0..walk.size], &walk.name) catch |err|
            return if (err == error.NotFound) null else err;
        const found = name orelse return null;
        walk.size = found.len;
        var dir: Files.Name = undefined;
        const path = std.mem.print(&dir, parent ++ "/{s}", .{found}) catch return walk.next();
        return .{ .name = found, .head = WriteLayer.readHead(walk.files, path) };
    }
};

/// Returns a device whose private image is above that version, which therefore must stay; null if
/// there is none.
pub fn privateAbove(files: Files, version_id: Uuid) Files.Error!?Uuid {
    var walk: LayerIterator = .{ .files = files };
    while (try walk.next()) |found| {
        const head = found.head catch continue;
        if (head.binding.class == .private and
            head.binding.version_id.eql(version_id)) return head.binding.device_id;
    }
    return null;
}

/// Returns whether a device has data here, its own or of a version in maintenance. A layer with an
/// unreadable head counts as a private image.
pub fn keepsOf(files: Files, device_id: Uuid) Files.Error!bool {
    var walk: LayerIterator = .{ .files = files };
    while (try walk.next()) |found| {
        const head = found.head catch return true;
        if (head.binding.class.isDurable() and head.binding.device_id.eql(device_id)) return true;
    }
    return false;
}

/// Removes the layers of a device in that class; `vdisk_id` also names an image whose head cannot
/// be read. `InUse`: the device runs, or an edge has heard from it a moment ago. @returns how many
/// layers were removed
pub fn drop(
    files: Files,
    device_id: Uuid,
    class: layer_head.Class,
    vdisk_id: ?Uuid,
) (Files.Error || error{InUse})!u32 {
    var count: u32 = 0;
    var walk: LayerIterator = .{ .files = files };
    const named = nameOf(
        .{ .class = class, .device_id = device_id, .vdisk_id = vdisk_id orelse .zero },
    ).toText();
    while (try walk.next()) |found| {
        const is_named = std.mem.eql(u8, found.name, &named);
        const is_owned = if (found.head) |head| head.binding.class == class and
            head.binding.device_id.eql(device_id) else |_| is_named;
        if (!is_owned) continue;
        var dir: Files.Name = undefined;
        try WriteLayer.remove(
            files,
            std.mem.print(&dir, parent ++ "/{s}", .{found.name}) catch unreachable,
        );
        count += 1;
    }
    return count;
}

const testing = std.testing;

test "layers are found by owner, locked while open, and dropped for one device and class alone" {
    var tmp = testing.tmpDir(.{});
    defer tmp.cleanup();
    var on: @import("../files/linux_files.zig") = .fromFd(tmp.dir.handle);
    const files = on.files();
    try testing.expectEqual(null, try privateAbove(files, .fromBytes(@splat(9))));
    try files.makeDir(parent);
    const zeros: [8192]u8 = @splat(0);
    const below: @import("../block_source.zig") =
        .{ .context = @constCast(&zeros), .vtable = &.{ .read = readZeros }, .size = zeros.len };
    const owners = [_]Owner{
        .{ .class = .edge_persistent, .device_id = .fromRandom(@splat(1)), .vdisk_id = .zero },
        .{
            .class = .private,
            .device_id = .fromRandom(@splat(1)),
            .vdisk_id = .fromRandom(@splat(7)),
        },
        .{
            .class = .private,
            .device_id = .fromRandom(@splat(1)),
            .vdisk_id = .fromRandom(@splat(8)),
        },
        .{
            .class = .private,
            .device_id = .fromRandom(@splat(2)),
            .vdisk_id = .fromRandom(@splat(7)),
        },
    };
    var open: [owners.len]WriteLayer = undefined;
    for (owners, &open, 0..) |owner, *layer, index| {
        var dir: Files.Name = undefined;
        layer.* = try .create(testing.allocator, files, dirOf(nameOf(owner), &dir), .{
            .layer_id = .fromBytes(@splat(@intCast(index + 1))),
            .binding = .{
                .class = owner.class,
                .device_id = owner.device_id,
                .version_id = .fromBytes(@splat(9)),
                .disk_size = zeros.len,
            },
            .limit_bytes = 4096,
            .sequence = 0,
        }, below);
    }
    const device: Uuid = .fromRandom(@splat(1));
    try testing.expect(try keepsOf(files, device) and !try keepsOf(files, .fromRandom(@splat(3))));
    try testing.expectError(error.InUse, drop(files, device, .private, null));
    for (&open) |*layer| layer.close(testing.allocator);
    try testing.expectEqual(2, try drop(files, device, .private, null));
    try testing.expectEqual(0, try drop(files, device, .private, null));
    try testing.expect(
        (try privateAbove(files, .fromBytes(@splat(9)))).?.eql(.fromRandom(@splat(2))),
    );
    // A layer with a damaged head is found by its name.
    var dir: Files.Name = undefined;
    var name: Files.Name = undefined;
    const path = try std.mem.print(&name, "{s}/head", .{dirOf(nameOf(owners[3]), &dir)});
    const head = try files.open(path, .write);
    try files.write(head, "x", 0);
    files.close(head);
    try testing.expectEqual(0, try drop(files, .fromRandom(@splat(2)), .private, null));
    try testing.expectEqual(
        1,
        try drop(files, .fromRandom(@splat(2)), .private, .fromRandom(@splat(7))),
    );
    try testing.expectEqual(1, try drop(files, device, .edge_persistent, null));
    var walk: LayerIterator = .{ .files = files };
    try testing.expectEqual(null, try walk.next());
}

fn readZeros(_: *anyopaque, buffer: []u8, _: u64) @import("../block_source.zig").ReadError!void {
    @memset(buffer, 0);
}
