//! Writes a qcow2 file of version 3. Numbers are big-endian. Specification: QEMU, "The qcow2 image
//! format" (docs/interop/qcow2.rst); its sections are named below.
//!
//! The file is the header, the L1 table, clusters of data with an L2 table before those that it
//! maps, and the reference counts. Each cluster of the file is in use once.

const std = @import("std");
const store = @import("store");
const Layout = store.@"export".Layout;
const TargetError = store.@"export".TargetError;
const assert = std.debug.assert;
const setSize = store.@"export".setSize;
const writeAt = store.@"export".writeAt;

/// The default of QEMU.
const cluster_bits = 16;
const cluster_size = 1 << cluster_bits;
const entry_size = 8;
const entries_in_cluster = cluster_size / entry_size;
/// Bytes of the disk that one L2 table maps.
const l2_span = entries_in_cluster * cluster_size;
/// "Host cluster management": a refcount has 16 bits.
const refcount_order = 4;
const refcounts_in_cluster = cluster_size / 2;
/// QEMU opens no larger L1 table: 32 MiB.
const l1_entries_max = (32 << 20) / entry_size;
pub const disk_size_max = l1_entries_max * l2_span;

/// "Header": the length of what is written; all that follows in its cluster is zeros, which is also
/// the end of the header extensions.
const header_size = 104;
/// "Standard Cluster Descriptor": the reference count is exactly one.
const copied: u64 = 1 << 63;

pub const Qcow2Writer = @This();

fd: i32,
disk_size: u64,
l1_entries: u64,
/// Bytes of the file that are in use, whole clusters.
end: u64,
/// The L2 table of the bytes that are being written; `l1_index` of it, or null before the first.
table: *[cluster_size]u8,
table_at: u64 = 0,
l1_index: ?u64 = null,
/// The last cluster that has a place.
cluster: ?u64 = null,
cluster_at: u64 = 0,

pub fn init(
    gpa: std.mem.Allocator,
    fd: i32,
    disk_size: u64,
) error{ TooLarge, OutOfMemory }!Qcow2Writer {
    if (disk_size > disk_size_max) return error.TooLarge;
    const l1_entries = std.math.divCeil(u64, disk_size, l2_span) catch unreachable;
    const l1_size = std.mem.alignForward(u64, l1_entries * entry_size, cluster_size);
    return .{
        .fd = fd,
        .disk_size = disk_size,
        .l1_entries = l1_entries,
        .end = cluster_size + l1_size,
        .table = try gpa.create([cluster_size]u8),
    };
}

pub fn deinit(writer: *Qcow2Writer, gpa: std.mem.Allocator) void {
    gpa.destroy(writer.table);
}

pub fn layout(writer: *Qcow2Writer) Layout {
    return .{ .context = writer, .vtable = &.{ .placeOf = placeOf, .finish = finish } };
}

fn of(context: *anyopaque) *Qcow2Writer {
    return @ptrCast(@alignCast(context));
}

fn placeOf(context: *anyopaque, offset: u64) TargetError!Layout.Place {
    const writer = of(context);
    assert(offset < writer.disk_size);
    const cluster = offset / cluster_size;
    if (writer.cluster != cluster) {
        assert(writer.cluster == null or writer.cluster.? < cluster);
        try writer.openTable(cluster / entries_in_cluster);
        writer.cluster_at = writer.take(cluster_size);
        writer.cluster = cluster;
        const at: usize = @intCast(cluster % entries_in_cluster * entry_size);
        put(u64, writer.table, at, writer.cluster_at | copied);
    }
    const skip = offset % cluster_size;
    return .{ .at = writer.cluster_at + skip, .size = cluster_size - skip };
}

/// Reserves bytes at the end of the file.
fn take(writer: *Qcow2Writer, size: u64) u64 {
    const at = writer.end;
    writer.end += size;
    return at;
}

/// "Cluster mapping": the L1 entry of a table is written with the table, when that is complete.
fn openTable(writer: *Qcow2Writer, l1_index: u64) TargetError!void {
    if (writer.l1_index == l1_index) return;
    try writer.closeTable();
    @memset(writer.table, 0);
    writer.table_at = writer.take(cluster_size);
    writer.l1_index = l1_index;
}

fn closeTable(writer: *Qcow2Writer) TargetError!void {
    const index = writer.l1_index orelse return;
    try writeAt(writer.fd, writer.table, writer.table_at);
    var entry: [entry_size]u8 = undefined;
    put(u64, &entry, 0, writer.table_at | copied);
    try writeAt(writer.fd, &entry, cluster_size + index * entry_size);
    writer.l1_index = null;
}

fn finish(context: *anyopaque) TargetError!void {
    const writer = of(context);
    try writer.closeTable();
    const counts = try writer.writeRefcounts();
    try setSize(writer.fd, writer.end);
    var header: [header_size]u8 = @splat(0);
    @memcpy(header[0..4], "QFI\xfb");
    put(u32, &header, 4, 3);
    put(u32, &header, 20, cluster_bits);
    put(u64, &header, 24, writer.disk_size);
    put(u32, &header, 36, @intCast(writer.l1_entries));
    put(u64, &header, 40, cluster_size);
    put(u64, &header, 48, counts.at);
    put(u32, &header, 56, @intCast(counts.clusters));
    put(u32, &header, 96, refcount_order);
    put(u32, &header, 100, header_size);
    try writeAt(writer.fd, &header, 0);
}

const RefcountTable = struct { at: u64, clusters: u64 };

/// "Host cluster management": the table, then the blocks, which count themselves too.
fn writeRefcounts(writer: *Qcow2Writer) TargetError!RefcountTable {
    const used = writer.end / cluster_size;
    var blocks: u64 = 1;
    var tables: u64 = 1;
    while (true) {
        const all = used + tables + blocks;
        const blocks_needed = std.math.divCeil(u64, all, refcounts_in_cluster) catch unreachable;
        const tables_needed =
            std.math.divCeil(u64, blocks_needed, entries_in_cluster) catch unreachable;
        if (blocks_needed <= blocks and tables_needed <= tables) break;
        blocks = @max(blocks, blocks_needed);
        tables = @max(tables, tables_needed);
    }
    const table_at = writer.take(tables * cluster_size);
    const blocks_at = writer.take(blocks * cluster_size);
    var left = writer.end / cluster_size;
    for (0..@intCast(blocks)) |index| {
        const counted: usize = @intCast(@min(left, refcounts_in_cluster));
        left -= counted;
        @memset(writer.table, 0);
        for (0..counted) |cluster| put(u16, writer.table, cluster * 2, 1);
        try writeAt(writer.fd, writer.table, blocks_at + index * cluster_size);
    }
    assert(left == 0);
    for (0..@intCast(tables)) |table| {
        @memset(writer.table, 0);
        const first = table * entries_in_cluster;
        for (first..@intCast(@min(blocks, first + entries_in_cluster))) |index|
            put(u64, writer.table, (index - first) * entry_size, blocks_at + index * cluster_size);
        try writeAt(writer.fd, writer.table, table_at + table * cluster_size);
    }
    return .{ .at = table_at, .clusters = tables };
}

fn put(comptime T: type, bytes: []u8, at: usize, value: T) void {
    std.mem.writeInt(T, bytes[at..][0..@divExact(@bitSizeOf(T), 8)], value, .big);
}
