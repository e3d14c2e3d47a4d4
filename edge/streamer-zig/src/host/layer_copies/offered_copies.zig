//! What this edge offers to another one of the copies of its write layers
//! (packages/proto/PEERS.md, "Copies of write layers"): those that the other one is to keep, and
//! nothing of others, which have people's files in them. Every area is compared with its list
//! before it is sent: one that is being changed, or has rotted, is not.

const std = @import("std");
const base = @import("base");
const core = @import("core");
const log = @import("../log.zig");
const store = @import("store");
const wire = @import("wire").peer_transfer;
const AreaList = store.AreaList;
const Uuid = base.Uuid;

pub const Page = [wire.copies_max * wire.CopySummary.size]u8;

/// `Unknown`: there is none, which an edge never answers of a disk that it cannot read.
pub const Error = error{ Unknown, Absent, Damaged, OutOfMemory };

/// The edge that asks, and the site by which this one decides what it may have.
pub const Asking = struct {
    edge: Uuid,
    site: *const core.site.Edges,

    fn mayHave(asking: *const Asking, layer: Uuid) bool {
        const site = asking.site;
        const second = core.layer_copies.second_edge.ofSite(layer, site.own_id, site);
        return if (second) |id| id.eql(asking.edge) else false;
    }
};

/// Writes what there is above an id, and returns its size.
pub fn page(
    store_path: []const u8,
    asking: *const Asking,
    above: Uuid,
    into: *Page,
) Error!u32 {
    var on = store.LinuxFiles.open(store_path) catch return error.Absent;
    defer on.close();
    const files = on.files();
    var walk: store.copy_names.Iterator = .{ .files = files, .dir = store.copy_names.own_parent };
    const text = above.toText();
    @memcpy(walk.name[0..text.len], &text);
    walk.size = text.len;
    var size: u32 = 0;
    while (walk.next() catch return error.Absent) |layer| {
        if (!asking.mayHave(layer)) continue;
        const summary = summaryOf(files, layer) orelse continue;
        @memcpy(into[size..][0..wire.CopySummary.size], &summary.emit());
        size += wire.CopySummary.size;
        if (size == into.len) break;
    }
    return if (size == 0) error.Unknown else size;
}

/// Null: it is being changed, or its disk has lost it.
fn summaryOf(files: store.Files, layer: Uuid) ?wire.CopySummary {
    const handle = openList(files, layer) catch return null;
    defer files.close(handle);
    const header = AreaList.readHeader(files, handle) catch return null;
    const head = AreaList.readHead(files, handle) catch return null;
    return .{
        .layer = layer,
        .layer_id = head.layer_id,
        .moment_unix_ms = header.moment_unix_ms,
        .entries = header.count,
        .sha256 = header.digest,
    };
}

fn pathOf(layer: Uuid, name: []const u8, into: *store.files.Name) []const u8 {
    var dir: store.files.Name = undefined;
    return store.copy_names.join(into, store.copy_names.ownDir(layer, &dir), name);
}

fn openList(files: store.Files, layer: Uuid) store.files.Error!store.files.Handle {
    var name: store.files.Name = undefined;
    return files.open(pathOf(layer, store.OwnCopy.list_name, &name), .read);
}

pub const Body = struct { fd: i32, size: u32 };

/// Opens the list, whose body begins at `AreaList.header_size`.
pub fn list(store_path: []const u8, asking: *const Asking, layer: Uuid) Error!Body {
    if (!asking.mayHave(layer)) return error.Absent;
    var on = store.LinuxFiles.open(store_path) catch return error.Absent;
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
    asking: *const Asking,
    layer: Uuid,
    number: u32,
) Error![]u8 {
    if (!asking.mayHave(layer)) return error.Absent;
    var on = store.LinuxFiles.open(store_path) catch return error.Absent;
    defer on.close();
    const files = on.files();
    const handle = openList(files, layer) catch return error.Absent;
    defer files.close(handle);
    const header = AreaList.readHeader(files, handle) catch return error.Damaged;
    const entry = (AreaList.readEntry(files, handle, &header, number) catch
        return error.Damaged) orelse return error.Absent;
    var name: store.files.Name = undefined;
    const path = pathOf(layer, store.OwnCopy.areas_name, &name);
    const areas = files.open(path, .read) catch return error.Absent;
    defer files.close(areas);
    const buffer = try gpa.create([AreaList.area_size]u8);
    defer gpa.destroy(buffer);
    const bytes = (entry.readFrom(files, areas, buffer) catch return error.Damaged) orelse
        return error.Damaged;
    if (!entry.isContent(bytes)) {
        dropRotten(files, layer, &header);
        return error.Damaged;
    }
    return gpa.dupe(u8, bytes);
}

/// An area that has not changed is not written again, so one that has rotted would stay as it is.
/// Without its list all of the copy is. A copy that is being changed has no list, and no problem.
fn dropRotten(files: store.Files, layer: Uuid, of: *const AreaList.Header) void {
    {
        const handle = openList(files, layer) catch return;
        defer files.close(handle);
        const now = AreaList.readHeader(files, handle) catch return;
        if (!std.meta.eql(now, of.*)) return;
    }
    var name: store.files.Name = undefined;
    files.remove(pathOf(layer, store.OwnCopy.list_name, &name)) catch return;
    log.info(
        "The copy of write cache {f} for another edge has changed on the disk; it is made again.",
        .{layer},
    );
}

const testing = std.testing;

fn testOffer(files: store.Files, layer: Uuid) !void {
    var name: store.files.Name = undefined;
    const dir = store.copy_names.ownDir(layer, &name);
    var made: store.OwnCopy = try .begin(testing.allocator, files, dir, &.{
        .layer_id = layer,
        .binding = .{
            .class = .edge_persistent,
            .device_id = layer,
            .version_id = .fromBytes(@splat(3)),
            .disk_size = AreaList.area_size,
        },
        .limit_bytes = 1 << 30,
        .sequence = 0,
    });
    defer made.deinit();
    try made.add(.{ .block = 0, .bytes = &@as([AreaList.block_size]u8, @splat('a')) });
    var written = try made.finish(1000, 0);
    written.deinit(testing.allocator);
}

test "an edge is given the copies that it is to keep, and none of those of others" {
    const gpa = testing.allocator;
    var tmp = testing.tmpDir(.{});
    defer tmp.cleanup();
    var on: store.LinuxFiles = .fromFd(tmp.dir.handle);
    var path_buffer: [64]u8 = undefined;
    const path = try std.mem.print(&path_buffer, ".zig-cache/tmp/{s}", .{&tmp.sub_path});
    const key = core.uplink.key_text.write(@splat(7));
    var edges: [3]core.site.Edges.EdgeDescription = undefined;
    for (&edges, 1..) |*edge, number| edge.* = .{
        .id = .fromRandom(@splat(@intCast(number))),
        .weight = 1,
        .subnets = &.{},
        .draining = false,
    };
    const site: core.site.Edges = .init(&.{ .key = &key, .edges = &edges }, edges[0].id);
    const layers = 8;
    for (0..layers) |number| try testOffer(on.files(), .fromRandom(@splat(@intCast(10 + number))));
    var counts: [2]u32 = undefined;
    for (&counts, edges[1..]) |*count, edge| {
        const asking: Asking = .{ .edge = edge.id, .site = &site };
        var offers: Page = undefined;
        const size = try page(path, &asking, .zero, &offers);
        count.* = size / wire.CopySummary.size;
        for (0..count.*) |at| {
            const bytes = offers[at * wire.CopySummary.size ..][0..wire.CopySummary.size];
            const layer = wire.CopySummary.parse(bytes).layer;
            gpa.free(try area(gpa, path, &asking, layer, 0));
            const body = try list(path, &asking, layer);
            on.files().close(@fromBackingInt(body.fd));
            for (&edges) |*other| {
                if (other.id.eql(edge.id)) continue;
                const stranger: Asking = .{ .edge = other.id, .site = &site };
                try testing.expectError(error.Absent, list(path, &stranger, layer));
                try testing.expectError(error.Absent, area(gpa, path, &stranger, layer, 0));
            }
        }
    }
    try testing.expect(counts[0] > 0 and counts[1] > 0);
    try testing.expectEqual(layers, counts[0] + counts[1]);
}
