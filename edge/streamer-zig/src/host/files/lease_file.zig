//! The DHCP server's leases on disk, so that an edge that was killed at any moment leases no
//! address to a second client. A worker appends each change, and then sends the answer that
//! promises it; the change is synced within a second. `bootfarm-edge leases` reads the file. The
//! latest record of an address counts.

const std = @import("std");
const base = @import("base");
const core = @import("core");
const sys = @import("../sys.zig");
const Worker = @import("../threads/worker.zig");
const journal_file = @import("journal.zig");
const journal_writer = @import("journal_writer.zig");
const UdpSocket = @import("../net/udp_socket.zig");
const record_frame = core.uplink.record_frame;

const Client = core.dhcp.Leases.Client;
const Record = core.dhcp.Leases.Record;

/// One address; the names are those of the JSON.
pub const Row = struct {
    ip: base.Ip4,
    /// All zero if nobody has it.
    mac: base.Mac,
    /// Option 61 as sent, in hex; empty if it was absent or the MAC.
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

const Format = journal_file.Framed("leases", 4 << 20);
const Journal = journal_file.Journal(Format);
const Writer = journal_writer.JournalWriter(Format);

/// Returns the latest record of each address. Rows live in the arena. The edge may be running.
pub fn read(
    arena: std.mem.Allocator,
    dir_fd: i32,
) (sys.Error || error{ Missing, OutOfMemory })![]const Row {
    var reader = try Journal.openReader(dir_fd);
    defer sys.close(reader.fd);
    return readFrom(arena, &reader, null);
}

fn readFrom(
    arena: std.mem.Allocator,
    reader: *Journal.Reader,
    writer: ?*Writer,
) (sys.Error || error{OutOfMemory})![]const Row {
    var latest: std.array_hash_map.Auto(u32, Row) = .empty;
    // A command says what it could not read; an edge starts.
    while (if (writer == null) try reader.next() else reader.nextReadable()) |frame| {
        const row = std.json.parseFromSliceLeaky(Row, arena, Format.payload(frame), .{
            .ignore_unknown_fields = true,
            .allocate = .alloc_always,
        }) catch |err| switch (err) {
            error.OutOfMemory => return error.OutOfMemory,
            // Another version of the edge wrote it.
            else => continue,
        };
        try latest.put(arena, row.ip.toInt(), row);
        if (writer) |to| to.noteRead(row.ip.toInt(), frame.len, reader.end);
    }
    return latest.values();
}

pub const LeaseFile = @This();

gpa: std.mem.Allocator,
writer: Writer,
/// The addresses that have a record, for a compaction.
live: []Writer.Key,
/// A change was not kept: no answer leaves before all leases are written once more.
is_behind: bool = false,

const payload_size_max = 512;
const FrameBuffer = [record_frame.header_size + payload_size_max]u8;

/// Restores the leases of earlier processes in the service. Records that no longer fit any network
/// are left out. `worker` stays the caller's and outlives the file.
pub fn open(
    gpa: std.mem.Allocator,
    worker: *Worker,
    dir_fd: i32,
    service: *core.dhcp.Service,
    now_us: u64,
) error{OutOfMemory}!LeaseFile {
    var writer: Writer = try .init(gpa, worker, .open(dir_fd));
    writer.problem = .leases_not_kept;
    errdefer writer.deinit();
    var arena: std.heap.ArenaAllocator = .init(gpa);
    defer arena.deinit();
    var reader = writer.file.reader();
    const rows = readFrom(arena.allocator(), &reader, &writer) catch |err| switch (err) {
        error.OutOfMemory => return error.OutOfMemory,
        else => unreachable, // Only without a writer.
    };
    writer.begin(&reader);
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
    var count: usize = 0;
    for (service.leases) |*table| if (table.*) |*leases| {
        count += leases.rows.len;
    };
    return .{ .gpa = gpa, .writer = writer, .live = try gpa.alloc(Writer.Key, count) };
}

/// Waits until what was appended is in the file.
pub fn close(file: *LeaseFile) void {
    file.writer.deinit();
    file.gpa.free(file.live);
    file.* = undefined;
}

/// An edge whose disk refuses the record continues; only a restart would show it.
pub fn append(file: *LeaseFile, record: *const Record) void {
    var buffer: FrameBuffer = undefined;
    const frame = encode(record, &buffer);
    if (!file.writer.append(record.ip.toInt(), frame)) file.is_behind = true;
}

/// Sends an answer once the leases that it may promise are in the file. It is lost if the worker is
/// full, and its client asks again.
pub fn send(file: *LeaseFile, socket: *UdpSocket, to: base.Endpoint, bytes: []const u8) void {
    if (!file.is_behind) file.writer.send(.written, socket, to, bytes);
}

/// Runs once a second: syncs what was appended, and keeps the file small.
pub fn tick(file: *LeaseFile, service: *const core.dhcp.Service, now_us: u64) void {
    file.writer.probe();
    if (file.writer.is_recovered.swap(false, .acquire)) file.is_behind = true;
    if (file.is_behind) {
        file.is_behind = false;
        _ = file.forAll(service, now_us, .append);
    }
    file.writer.sync();
    if (file.writer.needsCompaction()) file.compact(service, now_us);
}

fn compact(file: *LeaseFile, service: *const core.dhcp.Service, now_us: u64) void {
    const count = file.forAll(service, now_us, .note);
    file.writer.compact(file.live[0..count]);
}

/// Goes through all addresses that have a record.
fn forAll(
    file: *LeaseFile,
    service: *const core.dhcp.Service,
    now_us: u64,
    what: enum { append, note },
) usize {
    var count: usize = 0;
    for (service.leases) |*table| if (table.*) |*leases| {
        var records = leases.dump(now_us);
        while (records.next()) |record| : (count += 1) switch (what) {
            .append => file.append(&record),
            .note => file.live[count] = record.ip.toInt(),
        };
    };
    return count;
}

fn encode(record: *const Record, buffer: *FrameBuffer) []const u8 {
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
    return record_frame.encode(0, writer.buffered(), buffer);
}

fn restore(service: *core.dhcp.Service, now_us: u64, record: *const Record) void {
    for (service.leases) |*table| if (table.*) |*leases| {
        if (leases.restore(now_us, record)) return;
    };
}

const testing = std.testing;

const LeaseFixture = struct {
    tmp: testing.TmpDir,
    worker: *Worker,
    service: core.dhcp.Service,

    const second = std.time.us_per_s;
    const network: core.dhcp.Service.Network = .{
        .subnet = .of(.init(10, 0, 0, 1), 24),
        .mode = .server,
        .link = 0,
        .pools = &.{.{ .first = .init(10, 0, 0, 10), .last = .init(10, 0, 0, 19) }},
    };

    fn init() !LeaseFixture {
        const worker = try testing.allocator.create(Worker);
        worker.* = try .init(testing.io, 1 << 20);
        return .{
            .tmp = testing.tmpDir(.{}),
            .worker = worker,
            .service = try newService(),
        };
    }

    fn newService() !core.dhcp.Service {
        return .init(testing.allocator, .{
            .links = &.{.{ .ip = .init(10, 0, 0, 1) }},
            .networks = &.{network},
            .http_port = 80,
        });
    }

    /// Does what happens after the end of a process, however it ended.
    fn restart(bench: *LeaseFixture) !LeaseFile {
        bench.service.deinit(testing.allocator);
        bench.service = try newService();
        return bench.open();
    }

    fn open(bench: *LeaseFixture) !LeaseFile {
        const dir_fd = bench.tmp.dir.handle;
        return .open(testing.allocator, bench.worker, dir_fd, &bench.service, second);
    }

    fn deinit(bench: *LeaseFixture) void {
        bench.service.deinit(testing.allocator);
        bench.worker.deinit();
        testing.allocator.destroy(bench.worker);
        bench.tmp.cleanup();
    }

    fn bind(bench: *LeaseFixture, file: *LeaseFile, client: *const Client, ip: base.Ip4) !void {
        const leases = bench.service.leasesOf(0).?;
        try testing.expectEqual(.granted, leases.bind(second, client, ip, 600));
        while (bench.service.takeChange(second)) |record| file.append(&record);
        bench.worker.finish();
    }
};

fn clientOf(number: u48) Client {
    return .of(.fromInt(0x02bf00000000 + number), null, .client_id);
}

test "a killed process keeps each lease that it wrote, wherever the last record is torn" {
    var bench: LeaseFixture = try .init();
    defer bench.deinit();
    var file = try bench.open();
    const named: Client = .of(.fromInt(0x02bf00000002), "\x00name of a client", .client_id);
    try bench.bind(&file, &clientOf(1), .init(10, 0, 0, 11));
    try bench.bind(&file, &named, .init(10, 0, 0, 12));
    // A client has one address: its earlier one is free again.
    try bench.bind(&file, &clientOf(1), .init(10, 0, 0, 13));
    const leases = bench.service.leasesOf(0).?;
    try testing.expect(leases.decline(LeaseFixture.second, &named, .init(10, 0, 0, 12)));
    while (bench.service.takeChange(LeaseFixture.second)) |record| file.append(&record);
    bench.worker.finish();
    const size_before = file.writer.file.end;
    try bench.bind(&file, &clientOf(4), .init(10, 0, 0, 14));
    const size_after = file.writer.file.end;
    file.close();
    var bytes: [4096]u8 = undefined;
    _ = try bench.tmp.dir.readFile(testing.io, Format.name, &bytes);
    // The last record complete, then cut at each of its bytes.
    var cut = size_after;
    while (cut >= size_before) : (cut -= 1) {
        try bench.tmp.dir.writeFile(
            testing.io,
            .{ .sub_path = Format.name, .data = bytes[0..cut] },
        );
        var again = try bench.restart();
        defer again.close();
        try testing.expectEqual(
            if (cut == size_after) size_after else size_before,
            again.writer.file.end,
        );
        const kept = bench.service.leasesOf(0).?;
        try testing.expectEqual(
            clientOf(1).mac,
            kept.macOf(LeaseFixture.second, .init(10, 0, 0, 13)).?,
        );
        try testing.expectEqual(null, kept.macOf(LeaseFixture.second, .init(10, 0, 0, 11)));
        const other = clientOf(5);
        try testing.expectEqual(
            .taken,
            kept.bind(LeaseFixture.second, &other, .init(10, 0, 0, 13), 60),
        );
        try testing.expectEqual(
            .taken,
            kept.bind(LeaseFixture.second, &other, .init(10, 0, 0, 12), 60),
        );
        const last = kept.macOf(LeaseFixture.second, .init(10, 0, 0, 14));
        try testing.expectEqual(cut == size_after, last != null);
    }
}

test "a compacted file has the same leases as the long one" {
    var bench: LeaseFixture = try .init();
    defer bench.deinit();
    var file = try bench.open();
    for (0..50) |turn| for (1..4) |number| {
        const ip: base.Ip4 = .init(10, 0, 0, @intCast(10 + (turn * 3 + number) % 10));
        try bench.bind(&file, &clientOf(@intCast(number)), ip);
    };
    var arena: std.heap.ArenaAllocator = .init(testing.allocator);
    defer arena.deinit();
    const long = file.writer.file.end;
    const leases = bench.service.leasesOf(0).?;
    file.compact(&bench.service, LeaseFixture.second);
    bench.worker.finish();
    try testing.expect(file.writer.file.end < long / 10);
    const rows = try read(arena.allocator(), bench.tmp.dir.handle);
    try testing.expectEqual(3, rows.len);
    for (rows) |row| {
        try testing.expectEqual(.bound, row.state);
        try testing.expectEqual(row.mac, leases.macOf(LeaseFixture.second, row.ip).?);
    }
    try bench.bind(&file, &clientOf(9), .init(10, 0, 0, 15));
    file.close();
    var again = try bench.restart();
    defer again.close();
    try testing.expectEqual(
        clientOf(9).mac,
        bench.service.macOf(LeaseFixture.second, .init(10, 0, 0, 15)).?,
    );
}

test "a file of an earlier version is read: size, CRC-32 of number and payload, number, JSON" {
    var bench: LeaseFixture = try .init();
    defer bench.deinit();
    const payload =
        \\{"ip":"10.0.0.17","mac":"02:bf:00:00:00:07","clientId":"","state":"bound",
    ++ "\"untilUnixMs\":32503680000000}";
    var header: [record_frame.header_size]u8 = undefined;
    _ = try std.fmt.hexToBytes(&header, "6700000056b55a4b0000000000000000");
    try bench.tmp.dir.writeFile(testing.io, .{ .sub_path = "leases", .data = header ++ payload });
    var file = try bench.open();
    defer file.close();
    const leases = bench.service.leasesOf(0).?;
    const mac = leases.macOf(LeaseFixture.second, .init(10, 0, 0, 17)).?;
    try testing.expectEqual(base.Mac.fromInt(0x02bf00000007), mac);
}

test "no answer leaves while a lease could not be kept, and the next second writes all of them" {
    var bench: LeaseFixture = try .init();
    defer bench.deinit();
    var file = try bench.open();
    defer file.close();
    try bench.bind(&file, &clientOf(1), .init(10, 0, 0, 11));
    var socket: UdpSocket = undefined;
    file.is_behind = true;
    const given = file.writer.given;
    file.send(&socket, .{ .ip = .init(127, 0, 0, 1), .port = 1 }, "an offer");
    file.tick(&bench.service, LeaseFixture.second);
    bench.worker.finish();
    try testing.expect(!file.is_behind);
    try testing.expectEqual(given + 1, file.writer.written.load(.acquire));
    try testing.expectEqual(given + 1, file.writer.synced.load(.acquire));
}
