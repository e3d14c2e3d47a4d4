//! Copies write layers as they are to a store that is moved. Nobody writes them meanwhile.

const std = @import("std");
const store_module = @import("store");

const Files = store_module.Files;
const Handle = store_module.files.Handle;
const WriteLayer = store_module.WriteLayer;
const device_layers = store_module.device_layers;

pub const Error = store_module.files.Error || error{ InUse, OutOfMemory, SourceFailed };

const piece_size = 1 << 20;

/// Returns how many there are. Files.Error: of the destination.
pub fn copyAll(gpa: std.mem.Allocator, from: Files, to: Files) Error!u64 {
    const buffer = try gpa.alloc(u8, piece_size);
    defer gpa.free(buffer);
    var count: u64 = 0;
    var walk: device_layers.LayerIterator = .{ .files = from };
    while (walk.next() catch return error.SourceFailed) |layer| {
        // A layer without a head that can be read is copied too: somebody may repair it.
        const is_kept = if (layer.head) |head| head.binding.class.isDurable() else |_| true;
        if (!is_kept) continue;
        try copyOne(from, to, layer.name, buffer);
        count += 1;
    }
    try to.syncDir(device_layers.parent);
    return count;
}

fn copyOne(from: Files, to: Files, layer: []const u8, buffer: []u8) Error!void {
    var dir_name: store_module.files.Name = undefined;
    const dir = std.mem.print(&dir_name, device_layers.parent ++ "/{s}", .{layer}) catch return;
    // What an interrupted move has left.
    try WriteLayer.remove(to, dir);
    try to.makeDir(dir);
    var name: store_module.files.Name = undefined;
    var at: []const u8 = "";
    while (from.nextName(dir, at, &name) catch return error.SourceFailed) |found| {
        at = found;
        var path_name: store_module.files.Name = undefined;
        const path = std.mem.print(&path_name, "{s}/{s}", .{ dir, found }) catch continue;
        const source = from.open(path, .read) catch return error.SourceFailed;
        defer from.close(source);
        const target = try to.create(path);
        defer to.close(target);
        try copyFile(from, source, to, target, buffer);
        try to.sync(target);
    }
    try to.syncDir(dir);
}

/// Holes stay holes.
fn copyFile(from: Files, source: Handle, to: Files, target: Handle, buffer: []u8) Error!void {
    const size = from.size(source) catch return error.SourceFailed;
    try to.setSize(target, size);
    var offset: u64 = 0;
    while (from.nextData(source, offset) catch return error.SourceFailed) |data_at| {
        const first = data_at / store_module.block.block_size * store_module.block.block_size;
        offset = @max(offset, first);
        if (offset >= size) break;
        const part = buffer[0..@intCast(@min(buffer.len, size - offset))];
        const is_whole = from.readWhole(source, part, offset) catch return error.SourceFailed;
        if (!is_whole) return error.SourceFailed;
        try writeData(to, target, part, offset);
        offset += part.len;
    }
}

/// Writes what is not zeros.
fn writeData(to: Files, target: Handle, bytes: []const u8, offset: u64) Error!void {
    const block_size = store_module.block.block_size;
    var at: usize = 0;
    while (at < bytes.len) {
        const begin = at;
        while (at < bytes.len and !isZeros(bytes, at)) at += block_size;
        const end = @min(at, bytes.len);
        if (end > begin) try to.write(target, bytes[begin..end], offset + begin);
        while (at < bytes.len and isZeros(bytes, at)) at += block_size;
    }
}

fn isZeros(bytes: []const u8, at: usize) bool {
    const end = @min(bytes.len, at + store_module.block.block_size);
    return std.mem.allEqual(u8, bytes[at..end], 0);
}
