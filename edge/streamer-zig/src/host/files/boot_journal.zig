//! Boots on disk, so that a restarted edge continues them with the same boot ids and later
//! revisions. A worker appends the records: the packet loop never waits for the disk. What a device
//! must not lose with the process or with the machine's power waits for its record
//! (`JournalWriter.send`), and so does the answer to a menu's choice. Other answers do not wait: a
//! process that is killed within milliseconds of such an answer, or a machine that loses power,
//! begins that boot again. The latest record of a boot counts.

const std = @import("std");
const base = @import("base");
const core = @import("core");
const sys = @import("../sys.zig");
const journal_file = @import("journal.zig");
const journal_writer = @import("journal_writer.zig");
const data_dir = @import("data_dir.zig");
const log = @import("../log.zig");
const Worker = @import("../threads/worker.zig");
const record_frame = core.uplink.record_frame;
const assert = std.debug.assert;

const Boot = core.boot.Boot;
const Guest = core.boot.Guest;

const Format = journal_file.Framed("boots.journal", 8 << 20);
const Journal = journal_file.Journal(Format);
const Writer = journal_writer.JournalWriter(Format);

pub const BootJournal = @This();

gpa: std.mem.Allocator,
writer: Writer,
kernel_boot_id: base.Uuid,
/// The ids of the boots in the table, for a compaction; allocated with the table's size.
live: []Writer.Key = &.{},
/// After a disk that refused records: the table's slot from which on boots are still to be written
/// once more.
rewriting: ?core.boot.Table.Iterator = null,
buffer: [record_frame.frame_size_max]u8 = undefined,
payload: [record_frame.payload_size_max]u8 = undefined,

/// Boots that are written once more in each second.
const rewritten_max = 64;

/// `is_withdrawn`: the boot belongs to another edge and must not come back here.
const Entry = struct { kernel: base.Uuid, boot: Boot, is_withdrawn: bool = false };

/// `worker` stays the caller's and outlives the journal.
pub fn open(
    gpa: std.mem.Allocator,
    worker: *Worker,
    dir_fd: i32,
) error{OutOfMemory}!BootJournal {
    var file: Journal = .open(dir_fd);
    errdefer file.close();
    var writer: Writer = try .init(gpa, worker, file);
    writer.problem = .boots_not_kept;
    return .{
        .gpa = gpa,
        .writer = writer,
        .kernel_boot_id = data_dir.kernelBootId() orelse .zero,
    };
}

/// Waits until what was written is in the file.
pub fn close(journal: *BootJournal) void {
    journal.writer.deinit();
    journal.gpa.free(journal.live);
    journal.* = undefined;
}

/// Fills the table with the boots of earlier processes, before the first record is written. Boots
/// that do not fit into the table, and records that are damaged or that this version cannot read,
/// are left out.
pub fn load(
    journal: *BootJournal,
    table: *core.boot.Table,
    now_us: u64,
    now_unix_ms: u64,
) error{OutOfMemory}!void {
    assert(journal.live.len == 0);
    journal.live = try journal.gpa.alloc(Writer.Key, table.slots.len);
    var arena: std.heap.ArenaAllocator = .init(journal.gpa);
    defer arena.deinit();
    var reader = journal.writer.file.reader();
    while (reader.nextReadable()) |frame| {
        _ = arena.reset(.retain_capacity);
        const payload = Format.payload(frame);
        const entry = std.json.parseFromSliceLeaky(Entry, arena.allocator(), payload, .{
            .ignore_unknown_fields = true,
        }) catch continue;
        const key = keyOf(entry.boot.identity.id);
        if (entry.is_withdrawn)
            journal.writer.noteReadEnd(key)
        else
            journal.writer.noteRead(key, frame.len, reader.end);
        journal.take(table, entry, now_us, now_unix_ms);
    }
    if (reader.skipped > 0) log.info(
        "{s}: {d} bytes are torn or damaged; every other record is read.",
        .{ Format.name, reader.skipped },
    );
    journal.writer.begin(&reader);
}

/// A device as the journal of an edge that may be running describes it.
pub const SeenDevice = struct {
    mac: base.Mac,
    class: core.boot.Guest.CacheClass,
    /// It reported within the last minute before the record, and its writes are there.
    is_alive: bool,
    started_unix_ms: u64,
};

/// Returns the latest boot of each device, in the order of the devices' first records. `arena`
/// keeps the result only.
pub fn readDevices(
    arena: std.mem.Allocator,
    dir_fd: i32,
) (sys.Error || error{ Missing, OutOfMemory })![]const SeenDevice {
    var reader = try Journal.openReader(dir_fd);
    defer sys.close(reader.fd);
    var scratch: std.heap.ArenaAllocator = .init(arena);
    defer scratch.deinit();
    var devices: std.array_hash_map.Auto([6]u8, SeenDevice) = .empty;
    while (try reader.next()) |frame| {
        _ = scratch.reset(.retain_capacity);
        const payload = Format.payload(frame);
        const entry = std.json.parseFromSliceLeaky(Entry, scratch.allocator(), payload, .{
            .ignore_unknown_fields = true,
        }) catch continue;
        const boot = &entry.boot;
        const slot = try devices.getOrPut(arena, boot.identity.mac.bytes);
        if (slot.found_existing and slot.value_ptr.started_unix_ms > boot.started_unix_ms) continue;
        const guest = boot.guest orelse Guest{ .kernel_start_us = 0, .is_silent = true };
        const is_lost = guest.cache_status.state == .lost;
        slot.value_ptr.* = .{
            .mac = boot.identity.mac,
            .class = guest.cache_status.class,
            .is_alive = !entry.is_withdrawn and !guest.is_silent and !is_lost,
            .started_unix_ms = boot.started_unix_ms,
        };
    }
    return devices.values();
}

fn keyOf(id: base.Uuid) Writer.Key {
    return @bitCast(id.bytes);
}

/// Keeps the present state of a boot; returns false if the worker has too much to do. An edge whose
/// disk refuses continues; only a restart would show it.
pub fn write(journal: *BootJournal, boot: *const Boot) bool {
    const frame = journal.encode(boot, false) catch return true;
    return journal.writer.append(keyOf(boot.identity.id), frame);
}

/// Another edge of the site has the boot: after a restart it must not come back.
pub fn writeWithdrawn(journal: *BootJournal, boot: *const Boot) void {
    const frame = journal.encode(boot, true) catch return;
    _ = journal.writer.end(keyOf(boot.identity.id), frame);
}

/// Called before the edge stops in an orderly way.
pub fn sync(journal: *BootJournal) void {
    journal.writer.sync();
    journal.writer.worker.finish();
}

/// Keeps the file small, and whole after a disk refused records. Runs often and mostly does
/// nothing.
pub fn compact(journal: *BootJournal, table: *core.boot.Table) void {
    journal.writer.probe();
    if (journal.writer.is_recovered.swap(false, .acquire)) journal.rewriting = table.iterate();
    if (journal.rewriting) |*boots| for (0..rewritten_max) |_| {
        const boot = boots.next() orelse {
            journal.rewriting = null;
            break;
        };
        // The agent writes it at its next turn.
        boot.touched = true;
    };
    if (journal.writer.needsCompaction()) journal.compactNow(table);
}

/// Leaves out what the next program needs not read before it serves.
pub fn compactNow(journal: *BootJournal, table: *core.boot.Table) void {
    assert(journal.live.len >= table.count);
    var count: usize = 0;
    var iterator = table.iterate();
    while (iterator.next()) |boot| : (count += 1) journal.live[count] = keyOf(boot.identity.id);
    journal.writer.compact(journal.live[0..count]);
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
    boot.onRestart(now_us);
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

/// A directory, and a process over it that can end and start again.
const Site = struct {
    tmp: testing.TmpDir,
    worker: Worker,
    journal: BootJournal,
    table: core.boot.Table,

    fn init(site: *Site) !void {
        site.tmp = testing.tmpDir(.{});
        try site.start();
    }

    fn start(site: *Site) !void {
        site.worker = try .init(testing.io, 1 << 20);
        site.table = try .init(testing.allocator, .{ .capacity = 8 });
        site.journal = try .open(testing.allocator, &site.worker, site.tmp.dir.handle);
        try site.journal.load(&site.table, 1_000_000, 1_795_000_001_000);
    }

    fn end(site: *Site) void {
        site.journal.close();
        site.table.deinit(testing.allocator);
        site.worker.deinit();
    }

    fn restart(site: *Site) !void {
        site.end();
        try site.start();
    }

    fn deinit(site: *Site) void {
        site.end();
        site.tmp.cleanup();
    }

    fn write(site: *Site, boot: *const Boot) !void {
        try testing.expect(site.journal.write(boot));
        site.worker.finish();
    }
};

test "boots survive a killed process with everything that was counted" {
    var site: Site = undefined;
    try site.init();
    defer site.deinit();
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
    try site.write(&testBoot(2));
    try site.write(&testBoot(1));
    try site.write(&boot);
    const file = &site.journal.writer.file;
    try sys.writeAllAt(file.fd, "torn", file.end);
    try site.restart();
    try testing.expectEqual(2, site.table.count);
    boot.touched = false;
    boot.live_changes = .{};
    const loaded = site.table.get(site.table.findByHandle(boot.identity.handle).?).?;
    try testing.expectEqualDeep(boot, loaded.*);
}

test "a damaged record loses its boot's latest state only" {
    var site: Site = undefined;
    try site.init();
    defer site.deinit();
    try site.write(&testBoot(1));
    try site.write(&testBoot(2));
    const begin = site.journal.writer.file.end;
    try site.write(&testBoot(3));
    try site.write(&testBoot(4));
    try sys.writeAllAt(site.journal.writer.file.fd, "\xff\xff", begin + 200);
    try site.restart();
    try testing.expectEqual(3, site.table.count);
    try testing.expectEqual(null, site.table.findById(testBoot(3).identity.id));
    try testing.expect(site.table.findById(testBoot(4).identity.id) != null);
    // What comes later, and a compaction, finds every record where it is.
    try site.write(&testBoot(3));
    site.journal.writer.compact(null);
    try site.restart();
    try testing.expectEqual(4, site.table.count);
}

test "a withdrawn boot does not come back with a restart" {
    var site: Site = undefined;
    try site.init();
    defer site.deinit();
    try site.write(&testBoot(1));
    try site.write(&testBoot(2));
    site.journal.writeWithdrawn(&testBoot(1));
    try site.restart();
    try testing.expectEqual(1, site.table.count);
    try testing.expectEqual(null, site.table.findById(testBoot(1).identity.id));
}

test "a record without an id, and one of a known boot with another device, are left out" {
    var site: Site = undefined;
    try site.init();
    defer site.deinit();
    var nameless = testBoot(1);
    nameless.identity.id = .zero;
    try site.write(&nameless);
    try site.write(&testBoot(2));
    var other = testBoot(2);
    other.identity.mac = testBoot(3).identity.mac;
    try site.write(&other);
    try site.restart();
    try testing.expectEqual(1, site.table.count);
    const ref = site.table.findById(testBoot(2).identity.id).?;
    try testing.expect(site.table.get(ref).?.identity.mac.eql(testBoot(2).identity.mac));
}

test "whoever reads a running edge's journal finds each device's latest boot" {
    var site: Site = undefined;
    try site.init();
    defer site.deinit();
    var arena: std.heap.ArenaAllocator = .init(testing.allocator);
    defer arena.deinit();
    var before = testBoot(1);
    before.guest = .{ .kernel_start_us = 0, .cache_status = .{ .class = .edge } };
    var boot = before;
    boot.identity.id = .fromRandom(@splat(7));
    boot.started_unix_ms += 1;
    boot.guest.?.cache_status.class = .device_ram_overflow;
    var lost = testBoot(2);
    lost.guest = .{ .kernel_start_us = 0, .cache_status = .{ .class = .edge, .state = .lost } };
    try site.write(&boot);
    try site.write(&before);
    try site.write(&lost);
    try site.write(&testBoot(3));
    const dir_fd = site.tmp.dir.handle;
    const devices = try BootJournal.readDevices(arena.allocator(), dir_fd);
    try testing.expectEqual(3, devices.len);
    try testing.expectEqual(.device_ram_overflow, devices[0].class);
    try testing.expect(devices[0].mac.eql(boot.identity.mac));
    for (devices, [_]bool{ true, false, false }) |device, is_alive|
        try testing.expectEqual(is_alive, device.is_alive);
    boot.guest.?.is_silent = true;
    try site.write(&boot);
    const later = try BootJournal.readDevices(arena.allocator(), dir_fd);
    try testing.expect(!later[0].is_alive);
}

test "a record of impossible phases is left out" {
    var site: Site = undefined;
    try site.init();
    defer site.deinit();
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
        try site.write(&boot);
    }
    try site.restart();
    try testing.expectEqual(1, site.table.count);
    try testing.expect(site.table.findById(testBoot(3).identity.id) != null);
}

test "a compacted journal has the boots of the table, in the order in which they began" {
    var site: Site = undefined;
    try site.init();
    defer site.deinit();
    _ = try site.table.insert(testBoot(1), 1000);
    var again = testBoot(1);
    again.identity.id = .fromRandom(@splat(0x33));
    again.identity.handle += 1000;
    const latest = try site.table.insert(again, 1000);
    try site.write(&testBoot(1));
    // It is in the table no more.
    try site.write(&testBoot(2));
    try site.write(&again);
    try site.write(&testBoot(1));
    const size_before = site.journal.writer.file.end;
    const id = site.table.get(latest).?.identity.id;
    site.journal.compact(&site.table);
    site.worker.finish();
    try testing.expectEqual(size_before, site.journal.writer.file.end);
    site.journal.writer.is_long.store(true, .release);
    site.journal.compact(&site.table);
    site.worker.finish();
    try testing.expect(site.journal.writer.file.end <= size_before / 2 + 100);
    try site.restart();
    try testing.expectEqual(2, site.table.count);
    const found = site.table.get(site.table.findByMac(again.identity.mac).?).?;
    try testing.expect(found.identity.id.eql(id));
    try testing.expect(!found.isOver());
}

test "a record that a full disk took in part hides none that is written after it" {
    var site: Site = undefined;
    try site.init();
    defer site.deinit();
    try site.write(&testBoot(1));
    {
        // As on a full disk: some bytes fit, then none.
        var ignore: linux.Sigaction =
            .{ .handler = .{ .handler = linux.SIG.IGN }, .mask = linux.sigemptyset(), .flags = 0 };
        var before: linux.Sigaction = undefined;
        _ = linux.sigaction(.XFSZ, &ignore, &before);
        defer _ = linux.sigaction(.XFSZ, &before, null);
        const limits = try std.posix.getrlimit(.FSIZE);
        const end_before = site.journal.writer.file.end;
        try std.posix.setrlimit(.FSIZE, .{ .cur = end_before + 100, .max = limits.max });
        defer std.posix.setrlimit(.FSIZE, limits) catch unreachable;
        try site.write(&testBoot(2));
    }
    try site.write(&testBoot(3));
    try site.restart();
    try testing.expectEqual(2, site.table.count);
    try testing.expect(site.table.findByHandle(testBoot(3).identity.handle) != null);
}
