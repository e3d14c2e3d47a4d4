//! Boots on disk, so that a restarted edge continues them with the same boot ids and later
//! revisions. The table of boots appends a record before the answer that depends on it is sent,
//! without a sync: a killed process loses nothing; a machine that loses power begins its boots
//! again. The latest record of a boot counts.

const std = @import("std");
const base = @import("base");
const core = @import("core");
const sys = @import("../sys.zig");
const journal_file = @import("journal.zig");
const data_dir = @import("data_dir.zig");
const record_frame = core.uplink.record_frame;

const Boot = core.boot.Boot;

const Format = journal_file.Framed("boots.journal", 8 << 20);
const Journal = journal_file.Journal(Format);

pub const BootJournal = @This();

file: Journal,
kernel_boot_id: base.Uuid,
buffer: [record_frame.frame_size_max]u8 = undefined,
payload: [record_frame.payload_size_max]u8 = undefined,

/// `is_withdrawn`: the boot belongs to another edge and must not come back here.
const Entry = struct { kernel: base.Uuid, boot: Boot, is_withdrawn: bool = false };

pub fn open(dir_fd: i32) sys.Error!BootJournal {
    return .{ .file = try .open(dir_fd), .kernel_boot_id = data_dir.kernelBootId() orelse .zero };
}

pub fn close(journal: *BootJournal) void {
    journal.file.close();
    journal.* = undefined;
}

/// Fills the table with the boots of earlier processes; `gpa` is for the time of the call.
/// Boots that do not fit into the table, and records that this version cannot read, are left
/// out.
pub fn load(
    journal: *BootJournal,
    gpa: std.mem.Allocator,
    table: *core.boot.Table,
    now_us: u64,
    now_unix_ms: u64,
) sys.Error!void {
    var arena: std.heap.ArenaAllocator = .init(gpa);
    defer arena.deinit();
    var reader = journal.file.reader();
    while (try reader.next()) |frame| {
        _ = arena.reset(.retain_capacity);
        const payload = Format.payload(frame);
        const entry = std.json.parseFromSliceLeaky(Entry, arena.allocator(), payload, .{
            .ignore_unknown_fields = true,
        }) catch continue;
        journal.take(table, entry, now_us, now_unix_ms);
    }
    try journal.file.cutAt(reader.end);
}

/// Appends the present state of a boot. An edge whose disk refuses continues; only a restart
/// would show it.
pub fn write(journal: *BootJournal, boot: *const Boot) void {
    journal.append(boot, false);
}

/// Another edge of the site has the boot: after a restart it must not come back.
pub fn writeWithdrawn(journal: *BootJournal, boot: *const Boot) void {
    journal.append(boot, true);
}

fn append(journal: *BootJournal, boot: *const Boot, is_withdrawn: bool) void {
    _ = journal.file.append(journal.encode(boot, is_withdrawn) catch return);
}

/// Called before the edge stops in an orderly way.
pub fn sync(journal: *BootJournal) void {
    journal.file.sync();
}

/// Keeps the file small. Runs often and mostly does nothing.
pub fn compact(journal: *BootJournal, table: *core.boot.Table) void {
    if (!journal.file.needsCompaction()) return;
    journal.file.compact(State{ .journal = journal, .table = table }, writeBoots);
}

const State = struct { journal: *BootJournal, table: *core.boot.Table };

/// In the order in which the boots began, so that none supersedes a later one when it is read.
fn writeBoots(state: State, fresh: *Journal.Compaction) sys.Error!void {
    var serial: u64 = 0;
    while (state.table.nextAfter(serial)) |found| {
        serial = found.serial;
        const frame = state.journal.encode(found.boot, false) catch return error.SystemCallFailed;
        try fresh.append(frame);
    }
}

fn take(
    journal: *const BootJournal,
    table: *core.boot.Table,
    entry: Entry,
    now_us: u64,
    now_unix_ms: u64,
) void {
    var boot = entry.boot;
    if (boot.identity.handle == 0 or boot.identity.id.eql(.zero)) return;
    if (!boot.identity.mac.isDevice()) return;
    for (&boot.phases) |*slot| if (slot.*) |*record| if (!record.isSound()) return;
    if (!entry.kernel.eql(journal.kernel_boot_id) or boot.started_us > now_us)
        boot.rebase(now_us, now_unix_ms);
    boot.touched = false;
    boot.live_changes = .{};
    // Nobody listened in the meantime.
    if (boot.guest) |*guest| if (!guest.is_silent) {
        guest.heard_us = now_us -| boot.started_us;
    };
    if (table.findById(boot.identity.id)) |ref| {
        if (entry.is_withdrawn) return table.remove(ref);
        if (!table.get(ref).?.identity.mac.eql(boot.identity.mac)) return;
        table.replace(ref, boot);
        return;
    }
    if (entry.is_withdrawn) return;
    _ = table.insert(boot, now_us) catch return;
}

fn encode(
    journal: *BootJournal,
    boot: *const Boot,
    is_withdrawn: bool,
) std.Io.Writer.Error![]const u8 {
    var writer: std.Io.Writer = .fixed(&journal.payload);
    const entry: Entry =
        .{ .kernel = journal.kernel_boot_id, .boot = boot.*, .is_withdrawn = is_withdrawn };
    try std.json.Stringify.value(entry, .{ .emit_null_optional_fields = false }, &writer);
    return record_frame.encode(boot.revision, writer.buffered(), &journal.buffer);
}

const testing = std.testing;
const linux = std.os.linux;

fn testBoot(number: u8) Boot {
    return .init(.{
        .id = .fromRandom(@splat(number)),
        .mac = .{ .bytes = .{ 2, 0xbf, 0, 0, 0, number } },
        .handle = 0xfedcba9876543210 + @as(u64, number),
        .token = @splat(number | 0x80),
    }, .{
        .version_id = .fromRandom(@splat(9)),
        .loader_files = .{ .kernel = true },
    }, 1000, 1_795_000_000_000);
}

test "boots survive a killed process with everything that was counted" {
    var tmp = testing.tmpDir(.{});
    defer tmp.cleanup();
    var boot = testBoot(1);
    boot.facts = .{
        .client_arch = 7,
        .vendor_class = .init("PXE\"Client"),
        .ip = .init(10, 0, 0, 1),
        .mtu = 1500,
    };
    boot.apply(
        2000,
        .{ .dhcp_request = .{ .message = .discover, .client = .rom, .xid = 77, .size = 300 } },
    );
    boot.apply(3000, .nbp_begin);
    boot.apply(900_000, .{ .suspected = .{ .cause = .tftp_timeout } });
    boot.token_nonce = @splat(0xff);
    boot.revision = 4;
    {
        var journal = try BootJournal.open(tmp.dir.handle);
        defer journal.close();
        journal.write(&testBoot(2));
        journal.write(&testBoot(1));
        journal.write(&boot);
        try sys.writeAllAt(journal.file.fd, "torn", journal.file.end);
    }
    var table: core.boot.Table = try .init(testing.allocator, 4);
    defer table.deinit(testing.allocator);
    var journal = try BootJournal.open(tmp.dir.handle);
    defer journal.close();
    try journal.load(testing.allocator, &table, 1_000_000, 1_795_000_001_000);
    try testing.expectEqual(2, table.count);
    boot.touched = false;
    boot.live_changes = .{};
    const loaded = table.get(table.findByHandle(boot.identity.handle).?).?;
    try testing.expectEqualDeep(boot, loaded.*);
}

test "a withdrawn boot does not come back with a restart" {
    var tmp = testing.tmpDir(.{});
    defer tmp.cleanup();
    var journal = try BootJournal.open(tmp.dir.handle);
    defer journal.close();
    journal.write(&testBoot(1));
    journal.write(&testBoot(2));
    journal.writeWithdrawn(&testBoot(1));
    var table: core.boot.Table = try .init(testing.allocator, 4);
    defer table.deinit(testing.allocator);
    var again = try BootJournal.open(tmp.dir.handle);
    defer again.close();
    try again.load(testing.allocator, &table, 1_000_000, 1_795_000_001_000);
    try testing.expectEqual(1, table.count);
    try testing.expectEqual(null, table.findById(testBoot(1).identity.id));
}

test "a record without an id, and one of a known boot with another device, are left out" {
    var tmp = testing.tmpDir(.{});
    defer tmp.cleanup();
    var journal = try BootJournal.open(tmp.dir.handle);
    defer journal.close();
    var nameless = testBoot(1);
    nameless.identity.id = .zero;
    journal.write(&nameless);
    journal.write(&testBoot(2));
    var other = testBoot(2);
    other.identity.mac = testBoot(3).identity.mac;
    journal.write(&other);
    var table: core.boot.Table = try .init(testing.allocator, 4);
    defer table.deinit(testing.allocator);
    var again = try BootJournal.open(tmp.dir.handle);
    defer again.close();
    try again.load(testing.allocator, &table, 1_000_000, 1_795_000_001_000);
    try testing.expectEqual(1, table.count);
    const ref = table.findById(testBoot(2).identity.id).?;
    try testing.expect(table.get(ref).?.identity.mac.eql(testBoot(2).identity.mac));
}

test "a record of impossible phases is left out" {
    var tmp = testing.tmpDir(.{});
    defer tmp.cleanup();
    var journal = try BootJournal.open(tmp.dir.handle);
    defer journal.close();
    for (1..4) |number| {
        var boot = testBoot(@intCast(number));
        boot.apply(2000, .nbp_begin);
        boot.apply(3000, .{ .loader_begin = .script });
        for (&boot.phases) |*slot| if (slot.*) |*record| switch (number) {
            1 => record.gap_count = core.boot.phase.gaps_max + 1,
            2 => {
                record.start_us += 5;
                record.end_us = record.start_us - 1;
            },
            else => {},
        };
        journal.write(&boot);
    }
    var table: core.boot.Table = try .init(testing.allocator, 4);
    defer table.deinit(testing.allocator);
    var again = try BootJournal.open(tmp.dir.handle);
    defer again.close();
    try again.load(testing.allocator, &table, 1_000_000, 1_795_000_001_000);
    try testing.expectEqual(1, table.count);
    try testing.expect(table.findById(testBoot(3).identity.id) != null);
}

test "a compacted journal has the same boots as the long one" {
    var tmp = testing.tmpDir(.{});
    defer tmp.cleanup();
    var table: core.boot.Table = try .init(testing.allocator, 8);
    defer table.deinit(testing.allocator);
    _ = try table.insert(testBoot(1), 1000);
    var again = testBoot(1);
    again.identity.id = .fromRandom(@splat(0x33));
    again.identity.handle += 1000;
    const latest = try table.insert(again, 1000);
    var journal = try BootJournal.open(tmp.dir.handle);
    defer journal.close();
    journal.file.end = Format.size_max + 1;
    journal.compact(&table);
    try testing.expect(journal.file.end < Format.size_max);
    var read_again: core.boot.Table = try .init(testing.allocator, 8);
    defer read_again.deinit(testing.allocator);
    try journal.load(testing.allocator, &read_again, 2000, 1_795_000_000_001);
    try testing.expectEqual(2, read_again.count);
    const found = read_again.get(read_again.findByMac(again.identity.mac).?).?;
    try testing.expect(found.identity.id.eql(table.get(latest).?.identity.id));
    try testing.expect(!found.isOver());
}

test "a record that a full disk took in part hides none that is written after it" {
    var tmp = testing.tmpDir(.{});
    defer tmp.cleanup();
    var journal = try BootJournal.open(tmp.dir.handle);
    journal.write(&testBoot(1));
    {
        // As on a full disk: some bytes fit, then none.
        var ignore: linux.Sigaction =
            .{ .handler = .{ .handler = linux.SIG.IGN }, .mask = linux.sigemptyset(), .flags = 0 };
        var before: linux.Sigaction = undefined;
        _ = linux.sigaction(.XFSZ, &ignore, &before);
        defer _ = linux.sigaction(.XFSZ, &before, null);
        const limits = try std.posix.getrlimit(.FSIZE);
        try std.posix.setrlimit(.FSIZE, .{ .cur = journal.file.end + 100, .max = limits.max });
        defer std.posix.setrlimit(.FSIZE, limits) catch unreachable;
        journal.write(&testBoot(2));
    }
    journal.write(&testBoot(3));
    journal.close();
    var table: core.boot.Table = try .init(testing.allocator, 4);
    defer table.deinit(testing.allocator);
    var again = try BootJournal.open(tmp.dir.handle);
    defer again.close();
    try again.load(testing.allocator, &table, 1_000_000, 1_795_000_001_000);
    try testing.expectEqual(2, table.count);
    try testing.expect(table.findByHandle(testBoot(3).identity.handle) != null);
}
