//! The DHCP server's leases on disk, so that an edge that was killed at any moment gives no address
//! to a second client. Each change is a record that is with the kernel before its answer goes out,
//! and on the disk within a second; the latest record of an address counts. A torn one at the end,
//! and what a power failure took, is left out.

const std = @import("std");
const base = @import("base");
const core = @import("core");
const sys = @import("../sys.zig");
const record_file = @import("record_file.zig");
const assert = std.debug.assert;
const linux = std.os.linux;

const Client = core.dhcp.Leases.Client;
const Record = core.dhcp.Leases.Record;

/// One address; names are those of the JSON.
pub const Row = struct {
    ip: base.Ip4,
    /// All zero where nobody has it.
    mac: base.Mac,
    /// Option 61 as sent, in hex; empty where it was absent or the MAC.
    clientId: []const u8,
    state: @FieldType(Record, "state"),
    /// 0 for an address that is only remembered.
    untilUnixMs: u64,

    pub fn client(row: *const Row) error{Damaged}!Client {
        var known: Client = .{ .mac = row.mac };
        if (row.clientId.len > 2 * Client.id_size_max) return error.Damaged;
        const id = std.fmt.hexToBytes(&known.id.buffer, row.clientId) catch return error.Damaged;
        known.id.count = @intCast(id.len);
        return known;
    }
};

pub const name = "leases";
const name_new = "leases.new";

/// The latest record of each address. Rows live in the arena.
pub fn read(
    arena: std.mem.Allocator,
    dir_fd: i32,
) (sys.Error || error{ Missing, OutOfMemory })![]const Row {
    const flags: linux.O = .{ .ACCMODE = .RDONLY, .CLOEXEC = true };
    const rc = linux.openat(dir_fd, name, flags, 0);
    if (linux.errno(rc) == .NOENT) return error.Missing;
    const fd: i32 = @intCast(try sys.check(rc));
    defer sys.close(fd);
    const rows, _ = try readFrom(arena, fd);
    return rows;
}

/// The rows, and where the last whole record ends.
fn readFrom(
    arena: std.mem.Allocator,
    fd: i32,
) (sys.Error || error{OutOfMemory})!struct { []const Row, u64 } {
    var latest: std.array_hash_map.Auto(u32, Row) = .empty;
    const buffer = try arena.create([record_file.frame_size_max]u8);
    var reader: record_file.Reader = .{ .fd = fd, .buffer = buffer };
    while (try reader.next()) |record| {
        const row = std.json.parseFromSliceLeaky(Row, arena, record.payload, .{
            .ignore_unknown_fields = true,
            .allocate = .alloc_always,
        }) catch |err| switch (err) {
            error.OutOfMemory => return error.OutOfMemory,
            // Of another version.
            else => continue,
        };
        try latest.put(arena, row.ip.toInt(), row);
    }
    return .{ latest.values(), reader.offset };
}

pub const LeaseFile = struct {
    fd: i32,
    dir_fd: i32,
    /// Where the last whole record ends.
    size: u64,
    /// Beyond it the file is written anew with what still holds.
    rewrite_size: u64 = size_max,
    is_synced: bool = true,

    const size_max = 4 << 20;
    const payload_size_max = 512;

    /// Gives the service the leases of earlier processes; `gpa` is for the time of the call. Records
    /// that fit no network any more are left out.
    pub fn open(
        gpa: std.mem.Allocator,
        dir_fd: i32,
        service: *core.dhcp.Service,
        now_us: u64,
    ) (sys.Error || error{OutOfMemory})!LeaseFile {
        const flags: linux.O = .{
            .ACCMODE = .RDWR,
            .CREAT = true,
            .APPEND = true,
            .CLOEXEC = true,
        };
        const fd: i32 = @intCast(try sys.check(linux.openat(dir_fd, name, flags, 0o600)));
        errdefer sys.close(fd);
        var arena: std.heap.ArenaAllocator = .init(gpa);
        defer arena.deinit();
        const rows, const size = try readFrom(arena.allocator(), fd);
        // What is torn at the end would hide all that is written from now on.
        _ = try sys.check(linux.ftruncate(fd, @intCast(size)));
        const now_unix_ms = sys.unixMs();
        for (rows) |*row| {
            const left_ms = row.untilUnixMs -| now_unix_ms;
            const record: Record = .{
                .ip = row.ip,
                .client = row.client() catch continue,
                .state = row.state,
                .remaining_us = left_ms *| std.time.us_per_ms,
            };
            restore(service, now_us, &record);
        }
        return .{ .fd = fd, .dir_fd = dir_fd, .size = size };
    }

    pub fn close(file: *LeaseFile) void {
        sys.close(file.fd);
        file.* = undefined;
    }

    /// An edge whose disk refuses goes on; only a restart would show it.
    pub fn append(file: *LeaseFile, record: *const Record) void {
        file.size += appendTo(file.fd, record) catch {
            // The disk is full. A record that is there in part would hide those behind it.
            _ = linux.ftruncate(file.fd, @intCast(file.size));
            return;
        };
        file.is_synced = false;
    }

    /// Once a second: what was written is on the disk, and the file stays small.
    pub fn tick(file: *LeaseFile, service: *const core.dhcp.Service, now_us: u64) void {
        if (!file.is_synced) {
            _ = linux.fdatasync(file.fd);
            file.is_synced = true;
        }
        if (file.size <= file.rewrite_size) return;
        file.rewrite(service, now_us) catch {
            // Try again after as much more.
            file.rewrite_size = file.size + size_max;
        };
    }

    /// After a crash the file is either the old one or the new one.
    fn rewrite(file: *LeaseFile, service: *const core.dhcp.Service, now_us: u64) sys.Error!void {
        const flags: linux.O = .{
            .ACCMODE = .RDWR,
            .CREAT = true,
            .TRUNC = true,
            .APPEND = true,
            .CLOEXEC = true,
        };
        const fd: i32 = @intCast(
            try sys.check(linux.openat(file.dir_fd, name_new, flags, 0o600)),
        );
        errdefer sys.close(fd);
        var size: u64 = 0;
        for (service.leases) |*table| if (table.*) |*leases| {
            var records = leases.dump(now_us);
            while (records.next()) |record| size += try appendTo(fd, &record);
        };
        _ = try sys.check(linux.fsync(fd));
        _ = try sys.check(linux.renameat(file.dir_fd, name_new, file.dir_fd, name));
        _ = linux.fsync(file.dir_fd);
        sys.close(file.fd);
        file.fd = fd;
        file.size = size;
        file.rewrite_size = size_max;
    }

    fn appendTo(fd: i32, record: *const Record) sys.Error!u64 {
        var hex: [2 * Client.id_size_max]u8 = undefined;
        const id = record.client.id.constSlice();
        const is_held = record.state != .remembered;
        const left_ms = record.remaining_us / std.time.us_per_ms;
        const row: Row = .{
            .ip = record.ip,
            .mac = record.client.mac,
            .clientId = std.mem.print(&hex, "{x}", .{id}) catch unreachable,
            .state = record.state,
            .untilUnixMs = if (is_held) sys.unixMs() + left_ms else 0,
        };
        var payload: [payload_size_max]u8 = undefined;
        var writer: std.Io.Writer = .fixed(&payload);
        std.json.Stringify.value(row, .{}, &writer) catch unreachable;
        var frame: [record_file.header_size + payload_size_max]u8 = undefined;
        const bytes = record_file.encode(0, writer.buffered(), &frame);
        try sys.writeAll(fd, bytes);
        return bytes.len;
    }
};

fn restore(service: *core.dhcp.Service, now_us: u64, record: *const Record) void {
    for (service.leases) |*table| if (table.*) |*leases| {
        if (leases.restore(now_us, record)) return;
    };
}

const testing = std.testing;

const Bench = struct {
    tmp: testing.TmpDir,
    service: core.dhcp.Service,

    const second = std.time.us_per_s;
    const network: core.dhcp.Service.Network = .{
        .subnet = .of(.init(10, 0, 0, 1), 24),
        .mode = .server,
        .link = 0,
        .pools = &.{.{ .first = .init(10, 0, 0, 10), .last = .init(10, 0, 0, 19) }},
    };

    fn init() !Bench {
        return .{ .tmp = testing.tmpDir(.{}), .service = try newService() };
    }

    fn newService() !core.dhcp.Service {
        return .init(testing.allocator, .{
            .links = &.{.{ .ip = .init(10, 0, 0, 1) }},
            .networks = &.{network},
            .http_port = 80,
        });
    }

    /// As after the end of a process, however it ended.
    fn restart(bench: *Bench) !LeaseFile {
        bench.service.deinit(testing.allocator);
        bench.service = try newService();
        return bench.open();
    }

    fn open(bench: *Bench) !LeaseFile {
        return .open(testing.allocator, bench.tmp.dir.handle, &bench.service, second);
    }

    fn deinit(bench: *Bench) void {
        bench.service.deinit(testing.allocator);
        bench.tmp.cleanup();
    }

    fn bind(bench: *Bench, file: *LeaseFile, client: *const Client, ip: base.Ip4) !void {
        const leases = bench.service.leasesOf(0).?;
        try testing.expectEqual(.granted, leases.bind(second, client, ip, 600));
        while (bench.service.takeChange(second)) |record| file.append(&record);
    }
};

fn clientOf(number: u48) Client {
    return .of(.fromInt(0x02bf00000000 + number), null, .client_id);
}

test "a process that ends without a word keeps each lease that it wrote, whatever is torn behind them" {
    var bench: Bench = try .init();
    defer bench.deinit();
    var file = try bench.open();
    const named: Client = .of(.fromInt(0x02bf00000002), "\x00name of a client", .client_id);
    try bench.bind(&file, &clientOf(1), .init(10, 0, 0, 11));
    try bench.bind(&file, &named, .init(10, 0, 0, 12));
    // A client has one address: its earlier one is free again.
    try bench.bind(&file, &clientOf(1), .init(10, 0, 0, 13));
    const leases = bench.service.leasesOf(0).?;
    try testing.expect(leases.decline(Bench.second, &named, .init(10, 0, 0, 12)));
    while (bench.service.takeChange(Bench.second)) |record| file.append(&record);
    const size_before = file.size;
    try bench.bind(&file, &clientOf(4), .init(10, 0, 0, 14));
    const size_after = file.size;
    file.close();
    var bytes: [4096]u8 = undefined;
    _ = try bench.tmp.dir.readFile(testing.io, name, &bytes);
    // The last record whole, then cut at each of its bytes.
    var cut = size_after;
    while (cut >= size_before) : (cut -= 1) {
        try bench.tmp.dir.writeFile(testing.io, .{ .sub_path = name, .data = bytes[0..cut] });
        var again = try bench.restart();
        defer again.close();
        try testing.expectEqual(if (cut == size_after) size_after else size_before, again.size);
        const kept = bench.service.leasesOf(0).?;
        try testing.expectEqual(clientOf(1).mac, kept.macOf(Bench.second, .init(10, 0, 0, 13)).?);
        try testing.expectEqual(null, kept.macOf(Bench.second, .init(10, 0, 0, 11)));
        const other = clientOf(5);
        try testing.expectEqual(.taken, kept.bind(Bench.second, &other, .init(10, 0, 0, 13), 60));
        try testing.expectEqual(.taken, kept.bind(Bench.second, &other, .init(10, 0, 0, 12), 60));
        const last = kept.macOf(Bench.second, .init(10, 0, 0, 14));
        try testing.expectEqual(cut == size_after, last != null);
    }
}

test "a file that was written anew says the same as the long one" {
    var bench: Bench = try .init();
    defer bench.deinit();
    var file = try bench.open();
    for (0..50) |turn| for (1..4) |number| {
        const ip: base.Ip4 = .init(10, 0, 0, @intCast(10 + (turn * 3 + number) % 10));
        try bench.bind(&file, &clientOf(@intCast(number)), ip);
    };
    var arena: std.heap.ArenaAllocator = .init(testing.allocator);
    defer arena.deinit();
    const long = file.size;
    const leases = bench.service.leasesOf(0).?;
    try file.rewrite(&bench.service, Bench.second);
    try testing.expect(file.size < long / 10);
    const rows = try read(arena.allocator(), bench.tmp.dir.handle);
    try testing.expectEqual(3, rows.len);
    for (rows) |row| {
        try testing.expectEqual(.bound, row.state);
        try testing.expectEqual(row.mac, leases.macOf(Bench.second, row.ip).?);
    }
    try bench.bind(&file, &clientOf(9), .init(10, 0, 0, 15));
    file.close();
    var again = try bench.restart();
    defer again.close();
    try testing.expectEqual(clientOf(9).mac, bench.service.macOf(Bench.second, .init(10, 0, 0, 15)).?);
}
