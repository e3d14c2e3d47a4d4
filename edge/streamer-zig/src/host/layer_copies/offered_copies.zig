//! What this edge offers to another one of the copies of its write layers
//! (packages/proto/PEERS.md, "Copies of write layers"). Every area is compared with its list before
//! it is sent: one that is being changed, or has rotted, is not.

const std = @import("std");
const base = @import("base");
const store = @import("store");
const wire = @import("wire").peer_transfer;
const AreaList = store.AreaList;
const Uuid = base.Uuid;

pub const Page = [wire.copies_max * wire.CopySummary.size]u8;

pub const Error = error{ Unknown, Absent, Damaged, OutOfMemory };

/// Writes what there is above an id, and returns its size.
pub fn page(store_path: []const u8, above: Uuid, into: *Page) Error!u32 {
    var on = store.LinuxFiles.open(store_path) catch return error.Unknown;
    defer on.close();
    const files = on.files();
    var walk: store.copy_names.Iterator = .{ .files = files, .dir = store.copy_names.own_parent };
    const text = above.toText();
    @memcpy(walk.name[0..text.len], &text);
    walk.size = text.len;
    var size: u32 = 0;
    while (walk.next() catch return error.Unknown) |layer| {
        const header = headerOf(files, layer) orelse continue;
        const summary: wire.CopySummary = .{
            .layer = layer,
            .moment_unix_ms = header.moment_unix_ms,
            .entries = header.count,
            .sha256 = header.digest,
        };
        @memcpy(into[size..][0..wire.CopySummary.size], &summary.emit());
        size += wire.CopySummary.size;
        if (size == into.len) break;
    }
    return if (size == 0) error.Unknown else size;
}

fn headerOf(files: store.Files, layer: Uuid) ?AreaList.Header {
    const handle = openList(files, layer) catch return null;
    defer files.close(handle);
    return AreaList.readHeader(files, handle) catch null;
}

fn openList(files: store.Files, layer: Uuid) store.files.Error!store.files.Handle {
    var dir: store.files.Name = undefined;
    var name: store.files.Name = undefined;
    const path = store.copy_names.join(
        &name,
        store.copy_names.ownDir(layer, &dir),
        store.OwnCopy.list_name,
    );
    return files.open(path, .read);
}

pub const Body = struct { fd: i32, size: u32 };

/// Opens the list, whose body begins at `AreaList.header_size`.
pub fn list(store_path: []const u8, layer: Uuid) Error!Body {
    var on = store.LinuxFiles.open(store_path) catch return error.Unknown;
    defer on.close();
    const files = on.files();
    const handle = openList(files, layer) catch return error.Absent;
    errdefer files.close(handle);
    const header = AreaList.readHeader(files, handle) catch return error.Damaged;
    return .{ .fd = @backingInt(handle), .size = @intCast(header.bodySize()) };
}

/// Returns the owned blocks of an area, which the caller frees.
pub fn area(
    gpa: std.mem.Allocator,
    store_path: []const u8,
    layer: Uuid,
    number: u32,
) Error![]u8 {
    var on = store.LinuxFiles.open(store_path) catch return error.Unknown;
    defer on.close();
    const files = on.files();
    const handle = openList(files, layer) catch return error.Absent;
    defer files.close(handle);
    const header = AreaList.readHeader(files, handle) catch return error.Damaged;
    const entry = (AreaList.readEntry(files, handle, &header, number) catch
        return error.Damaged) orelse return error.Absent;
    var dir: store.files.Name = undefined;
    var name: store.files.Name = undefined;
    const path = store.copy_names.join(
        &name,
        store.copy_names.ownDir(layer, &dir),
        store.OwnCopy.areas_name,
    );
    const areas = files.open(path, .read) catch return error.Absent;
    defer files.close(areas);
    const buffer = try gpa.create([AreaList.area_size]u8);
    defer gpa.destroy(buffer);
    const bytes = (entry.readFrom(files, areas, buffer) catch return error.Damaged) orelse
        return error.Damaged;
    // It may be changed just now: then the list is gone as well.
    if (!entry.isContent(bytes)) return error.Damaged;
    return gpa.dupe(u8, bytes);
}
