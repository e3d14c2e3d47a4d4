//! Tests of boots.zig: what an edge decides about a boot, with a world that a test sets.

const std = @import("std");
const base = @import("base");
const core = @import("core");
const candidates = @import("candidates.zig");
const fixture = @import("agent_test.zig");
const testing = std.testing;
const stream = @import("wire").stream;
const CacheClass = core.boot.Guest.CacheClass;
const Site = fixture.Site;
const clientOf = fixture.clientOf;
const macOf = fixture.macOf;
const uuid = fixture.uuid;

const second = std.time.us_per_s;

/// A restart that the edge took for this boot.
fn letWait(orders: *core.site.PowerOrders, order_id: base.Uuid, boot_id: base.Uuid) void {
    const bound: core.site.PowerOrders.BoundOrder = .{ .id = order_id, .boot_id = boot_id };
    orders.bindings[0] = .{ .bound = bound, .order = .restart, .state = .waiting };
    orders.waiting_count = 1;
}

test "a boot begins for an enabled device with a described version, and for no other" {
    const site: *Site = try .create();
    defer site.destroy();
    const now_us = site.io.now_us;
    try testing.expectEqual(null, try site.boots.begin(now_us, macOf(9)));
    try testing.expectEqual(null, try site.boots.begin(now_us, macOf(2)));
    try testing.expectEqual(0, site.io.problems);
    try testing.expectEqual(null, try site.boots.begin(now_us, macOf(3)));
    try testing.expectEqual(1, site.io.problems);
    try testing.expectEqual(0, site.boots.table.count);
    _ = site.open(1);
    const boot = site.boot(try site.begin(1));
    try testing.expect(boot.assignment.version_id.eql(uuid(1)));
    try testing.expect(site.io.profile_jobs.buffer[0].load.eql(uuid(1)));
    try testing.expectEqual(1, site.io.begun);
    try testing.expectEqual(site.io.unix_ms, boot.started_unix_ms);
    try testing.expect(boot.identity.handle != 0);
    try testing.expectEqual(null, boot.suspicion);
    // No version had to be opened.
    try testing.expectEqual(0, site.io.opened);
}

test "what hinders a boot is suspected when it begins, and counted once" {
    const site: *Site = try .create();
    defer site.destroy();
    const first = site.boot(try site.begin(1));
    try testing.expectEqual(.version_missing, first.suspicion.?.cause);
    try testing.expectEqualStrings("the version is unreadable", first.suspicion.?.text.slice());
    try testing.expectEqual(1, site.io.problems);
    // A version that can be opened hinders nothing.
    site.io.openable = .{ .id = uuid(1) };
    site.boots.supersede(site.io.now_us, site.boots.table.findById(first.identity.id).?);
    const next_ref = try site.begin(1);
    const next = site.boot(next_ref);
    try testing.expectEqual(null, next.suspicion);
    try testing.expectEqual(2, site.io.opened);
    // Another edge keeps the writes.
    site.boots.supersede(site.io.now_us, next_ref);
    site.devices[0].home = 1;
    site.setCache("edge_persistent", .stop);
    try site.decide();
    const elsewhere = site.boot(try site.begin(1));
    try testing.expectEqual(.writes_at_another_edge, elsewhere.suspicion.?.cause);
    try testing.expectEqualStrings(
        "its writes are kept at the edge north",
        elsewhere.suspicion.?.text.slice(),
    );
}

test "a full table begins no boot, and counts it" {
    const site: *Site = try .withVersion();
    defer site.destroy();
    site.state.unknownDevices = .boot;
    try site.decide();
    for (11..15) |number| _ = try site.begin(@intCast(number));
    try testing.expectError(error.Full, site.boots.begin(site.io.now_us, macOf(1)));
    try testing.expectEqual(1, site.boots.ignored.get(.boot_table_full));
}

test "a DHCP request continues its boot or begins one, and the firmware's facts stay" {
    const site: *Site = try .withVersion();
    defer site.destroy();
    const now_us = site.io.now_us;
    var client = clientOf(1, .discover);
    const ref = site.boots.forDhcp(now_us, &client, 7, 300).?;
    const boot = site.boot(ref);
    try testing.expectEqual(0, boot.facts.client_arch.?);
    try testing.expectEqual(7, boot.rom_xid.?);
    try testing.expectEqual(null, boot.ipxe_xid);
    try testing.expectEqual(null, boot.facts.ip);
    try testing.expectEqual(.dhcp_discover, boot.last_packets.from_device.?.packet.name);
    client = clientOf(1, .request);
    client.loader = .ipxe;
    client.arch = .uefi_x64;
    client.user_class = .init("iPXE");
    client.ip = .init(10, 0, 0, 7);
    client.machine_id = uuid(77);
    try testing.expectEqual(ref, site.boots.forDhcp(now_us, &client, 8, 300).?);
    try testing.expectEqual(8, boot.ipxe_xid.?);
    try testing.expectEqual(0, boot.facts.client_arch.?);
    try testing.expectEqualStrings("first", boot.facts.user_class.slice());
    try testing.expect(boot.facts.ip.?.eql(.init(10, 0, 0, 7)));
    try testing.expect(boot.facts.machine_id.?.eql(uuid(77)));
    try testing.expectEqual(.dhcp_request, boot.last_packets.from_device.?.packet.name);
    client = clientOf(1, .inform);
    _ = site.boots.forDhcp(now_us, &client, 7, 300).?;
    try testing.expectEqual(.dhcp_inform, boot.last_packets.from_device.?.packet.name);
    // An address that is not known yet does not displace one that is.
    try testing.expect(boot.facts.ip.?.eql(.init(10, 0, 0, 7)));
    client = clientOf(9, .discover);
    try testing.expectEqual(null, site.boots.forDhcp(now_us, &client, 9, 300));
}

test "the network's part of a READ is what the device measured without what the edge did" {
    const site: *Site = try .withVersion();
    defer site.destroy();
    const ref = try site.begin(1);
    const boot = site.boot(ref);
    site.io.now_us += 5000;
    const now_us = site.io.now_us;
    const sent: core.boot.ReadTimes.SentAnswer =
        .{ .request_id = 7, .arrived_at_us = 0, .at_us = 340, .is_repeated = false };
    boot.read_times.onSent(sent);
    var told: stream.FetchTimeBuffer(3) = .{};
    // Longer than the boot, right, and twice.
    const age_us: u32 = @intCast(now_us - boot.started_us);
    for ([_]u32{ age_us + 1, 1340, 2340 }) |fetch_us|
        try testing.expect(told.append(.{ .request_id = 7, .fetch_us = fetch_us }));
    var fetched: core.stream.Server.FetchedReads =
        .{ .boot_id = boot.identity.id, .reads = told.view() };
    site.boots.onFetched(&fetched, now_us);
    const times = &boot.read_times.initramfs.wire;
    try testing.expectEqual(1, times.count());
    try testing.expectEqual(1000, times.sum_us);
    // Nobody's boot, and one that is over.
    boot.read_times.onSent(sent);
    fetched.boot_id = uuid(77);
    site.boots.onFetched(&fetched, now_us);
    fetched.boot_id = boot.identity.id;
    boot.outcome = .ready;
    site.boots.onFetched(&fetched, now_us);
    try testing.expectEqual(1, times.count());
}

test "a changed boot is journaled and reported, before its end only while the log keeps up" {
    const site: *Site = try .withVersion();
    defer site.destroy();
    const ref = try site.begin(1);
    const boot = site.boot(ref);
    site.boots.settle(boot);
    try testing.expectEqual(1, boot.revision);
    try testing.expectEqual(1, site.io.told);
    try testing.expect(!boot.touched);
    // Nothing changed.
    site.boots.settle(boot);
    try testing.expectEqual(1, boot.revision);
    try testing.expectEqual(1, site.io.told);
    site.io.is_behind = true;
    boot.changed = true;
    boot.live_changes.steps = true;
    site.boots.settle(boot);
    try testing.expectEqual(1, site.io.reported);
    try testing.expectEqual(2, site.io.journaled);
    try testing.expectEqual(2, boot.revision);
    try testing.expect(!boot.live_changes.steps);
    site.boots.apply(ref, site.io.now_us, .{ .failed = .{ .cause = .token_refused } });
    try testing.expectEqual(2, site.io.reported);
    site.io.keeps_reports = false;
    boot.changed = true;
    site.boots.settle(boot);
    try testing.expectEqual(2, site.io.reported);
    try testing.expectEqual(4, site.io.told);
}

test "a boot that went on elsewhere is forgotten, and its report withdrawn if there was one" {
    const site: *Site = try .withVersion();
    defer site.destroy();
    const unreported = try site.begin(1);
    site.boots.take(unreported);
    try testing.expect(site.boot(unreported).is_taken);
    site.boots.withdraw(unreported, uuid(23));
    try testing.expectEqual(1, site.io.journaled_failovers);
    try testing.expectEqual(null, site.io.withdrawn_to);
    try testing.expectEqual(null, site.boots.get(unreported));
    const reported = try site.begin(1);
    site.boots.settle(site.boot(reported));
    site.boots.withdraw(reported, uuid(23));
    try testing.expect(site.io.withdrawn_to.?.eql(uuid(23)));
    try testing.expectEqual(0, site.boots.table.count);
}

test "a power command begins a boot of a device that is not in one" {
    const site: *Site = try .withVersion();
    defer site.destroy();
    const now_us = site.io.now_us;
    site.boots.powerOn(now_us, .{ .bytes = @splat(0) });
    try testing.expectEqual(0, site.boots.table.count);
    site.boots.powerOn(now_us, macOf(1));
    const ref = site.boots.table.findByMac(macOf(1)).?;
    try testing.expectEqual(.firmware, site.boot(ref).current().?);
    try testing.expectEqual(1, site.boot(ref).revision);
    site.boots.powerOn(now_us + 1, macOf(1));
    try testing.expectEqual(ref, site.boots.table.findByMac(macOf(1)).?);
    site.boots.apply(ref, now_us + 2, .{ .failed = .{ .cause = .token_refused } });
    site.boots.powerOn(now_us + 3, macOf(1));
    try testing.expect(!std.meta.eql(ref, site.boots.table.findByMac(macOf(1)).?));
}

test "a script requested by MAC address belongs to a boot that is not beyond its loader" {
    const site: *Site = try .withVersion();
    defer site.destroy();
    const now_us = site.io.now_us;
    const ip: base.Ip4 = .init(10, 0, 0, 7);
    try testing.expectEqual(null, try site.boots.forScript(now_us, macOf(9), ip));
    const ref = (try site.boots.forScript(now_us, macOf(1), ip)).?;
    try testing.expect(site.boot(ref).facts.ip.?.eql(ip));
    try testing.expectEqual(ref, (try site.boots.forScript(now_us, macOf(1), ip)).?);
    site.boots.apply(ref, now_us, .{ .loader_begin = .script });
    try testing.expectEqual(ref, (try site.boots.forScript(now_us, macOf(1), ip)).?);
    site.boots.apply(ref, now_us, .{ .stage1_read = .{ .size = 512 } });
    const next = (try site.boots.forScript(now_us, macOf(1), ip)).?;
    try testing.expect(!std.meta.eql(ref, next));
    // A path names its boot by handle, or by the device's address.
    try testing.expectEqual(next, site.boots.forPath(null, ip).?);
    const handle: core.boot.Handle = .{ .value = site.boot(next).identity.handle };
    try testing.expectEqual(next, site.boots.forPath(handle, .init(1, 2, 3, 4)).?);
    try testing.expectEqual(null, site.boots.forPath(null, .init(1, 2, 3, 4)));
}

test "an address from DHCP counts, one from a download only where none is known" {
    const site: *Site = try .withVersion();
    defer site.destroy();
    const ref = try site.begin(1);
    const facts = &site.boot(ref).facts;
    site.boots.learnPeer(ref, .init(10, 0, 0, 1));
    try testing.expect(facts.ip.?.eql(.init(10, 0, 0, 1)));
    site.boots.learnPeer(ref, .init(10, 0, 0, 2));
    try testing.expect(facts.ip.?.eql(.init(10, 0, 0, 1)));
    site.boots.learnAddress(macOf(1), .init(10, 0, 0, 3));
    try testing.expect(facts.ip.?.eql(.init(10, 0, 0, 3)));
    site.boots.learnAddress(macOf(9), .init(10, 0, 0, 4));
}

test "the write cache of a boot is its vDisk's, and the version's for the device that writes it" {
    const site: *Site = try .withVersion();
    defer site.destroy();
    const boot = site.boot(try site.begin(1));
    try testing.expectEqual(.device_ram, site.boots.writeCacheOf(boot).?.class);
    site.setCache("edge", .read_only);
    const edge = site.boots.writeCacheOf(boot).?;
    try testing.expectEqual(.edge, edge.class);
    try testing.expectEqual(4096, edge.limit_bytes.?);
    try testing.expectEqual(.read_only, edge.full);
    try testing.expect(!edge.writes_version);
    // A class that this edge does not know is never replaced by another one.
    site.setCache("of another year", .stop);
    try testing.expectEqual(null, site.boots.writeCacheOf(boot));
    boot.assignment.writes = true;
    const writer = site.boots.writeCacheOf(boot).?;
    try testing.expectEqual(.edge_persistent, writer.class);
    try testing.expect(writer.writes_version);
    boot.assignment.writes = false;
    boot.assignment.vdisk_id = uuid(99);
    try testing.expectEqual(.device_ram, site.boots.writeCacheOf(boot).?.class);
    boot.assignment.local_disk = .{ .full = .stop, .limit_bytes = null };
    try testing.expectEqual(.device_ram_local_disk, site.boots.writeCacheOf(boot).?.class);
    boot.assignment.local_disk = null;
    site.boots.policy = .nothing;
    site.boots.write_cache = .{ .class = .edge };
    try testing.expectEqual(.edge, site.boots.writeCacheOf(boot).?.class);
}

test "a boot onto the device's own disk has its order from the vDisk" {
    const site: *Site = try .withVersion();
    defer site.destroy();
    site.setCache("device_ram_local_disk", .read_only);
    const ref = try site.begin(1);
    const boot = site.boot(ref);
    try testing.expectEqual(.read_only, boot.assignment.local_disk.?.full);
    try testing.expectEqual(4096, boot.assignment.local_disk.?.limit_bytes.?);
    site.boots.supersede(site.io.now_us, ref);
    site.setCache("edge", .read_only);
    try testing.expectEqual(null, site.boot(try site.begin(1)).assignment.local_disk);
}

test "only writes that outlive a boot need their owner" {
    const site: *Site = try .withVersion();
    defer site.destroy();
    site.devices[0].home = 1;
    try site.decide();
    const boot = site.boot(try site.begin(1));
    for ([_]CacheClass{ .device_ram, .device_ram_overflow, .edge }) |class| {
        site.setCache(@tagName(class), .stop);
        try testing.expectEqual(null, site.boots.writeOwnerBlocker(boot));
    }
    for ([_]CacheClass{ .edge_persistent, .private }) |class| {
        site.setCache(@tagName(class), .stop);
        const blocker = site.boots.writeOwnerBlocker(boot).?;
        try testing.expectEqual(.writes_at_another_edge, blocker.cause);
        try testing.expectEqual(blocker.cause, site.boots.blockerOf(boot).?.cause);
    }
    // This edge is the owner, or nobody was chosen.
    for ([_]?u32{ 0, null }) |home| {
        site.devices[0].home = home;
        try testing.expectEqual(null, site.boots.writeOwnerBlocker(boot));
    }
    // A version above another one is written, whatever the vDisk's cache is.
    site.vdisks[0].writeCache = null;
    site.devices[0].home = 1;
    boot.assignment.version_id = uuid(3);
    try testing.expect(site.boots.writeOwnerBlocker(boot) != null);
    boot.assignment.version_id = uuid(1);
    boot.assignment.writes = true;
    try testing.expect(site.boots.writeOwnerBlocker(boot) != null);
}

test "a version in maintenance is served to its writer alone" {
    const site: *Site = try .create();
    defer site.destroy();
    site.io.openable = .{ .id = uuid(3), .layer_above = uuid(2) };
    const writer = site.boot(try site.begin(4));
    try testing.expect(writer.assignment.writes);
    try testing.expect(site.io.below.?.eql(uuid(2)));
    try testing.expect(site.boots.versionOf(writer).?.id.eql(uuid(3)));
    try testing.expectEqual(null, site.boots.blockerOf(writer));
    writer.assignment.writes = false;
    try testing.expectEqual(null, site.boots.versionOf(writer));
    try testing.expectEqual(.version_missing, site.boots.blockerOf(writer).?.cause);
    writer.assignment.writes = true;
    site.io.versions.buffer[0].kernel = null;
    try testing.expectEqual(.write_cache_unusable, site.boots.blockerOf(writer).?.cause);
}

test "a version is opened when it is needed, and why it cannot be is told" {
    const site: *Site = try .create();
    defer site.destroy();
    const boot = site.boot(try site.begin(1));
    try testing.expectEqual(null, site.boots.versionOf(boot));
    try testing.expectEqual(2, site.io.problems);
    try testing.expectEqualStrings(
        "the version is unreadable",
        site.boots.blockerOf(boot).?.text.slice(),
    );
    site.io.openable = .{ .id = uuid(1) };
    try testing.expectEqual(null, site.boots.blockerOf(boot));
    try testing.expectEqual(null, site.io.below);
    try testing.expect(site.boots.versionOf(boot).?.id.eql(uuid(1)));
    // One that can boot without a kernel, since nothing lies above it.
    site.io.versions.buffer[0].kernel = null;
    try testing.expectEqual(null, site.boots.blockerOf(boot));
    // A later state may give the version another line.
    for ([_][]const u8{ "quiet ${net0/mac}", "quiet || shell", "a\nchain x" }) |line| {
        site.io.versions.buffer[0].command_line = line;
        try testing.expectEqual(.version_missing, site.boots.blockerOf(boot).?.cause);
    }
    site.io.versions.buffer[0].command_line = "quiet";
    try testing.expectEqual(null, site.boots.blockerOf(boot));
    boot.assignment.version_id = uuid(88);
    try testing.expectEqualStrings(
        "the version is not_described",
        site.boots.blockerOf(boot).?.text.slice(),
    );
}

test "a full or lost write cache ends a boot that is not ready, and is reported of one that is" {
    for ([_]core.boot.Guest.CacheState{ .ok, .read_only, .stopped, .lost }) |state| {
        const site: *Site = try .withVersion();
        defer site.destroy();
        const ref = try site.begin(1);
        const boot = site.boot(ref);
        const status: core.boot.Guest.CacheStatus = .{ .class = .edge, .state = state };
        site.boots.onWriteCache(boot.identity.id, site.io.now_us, status);
        switch (state) {
            .ok, .read_only => try testing.expect(!boot.isOver()),
            .stopped => try testing.expectEqual(.write_cache_full, boot.outcome.?.failed.cause),
            .lost => try testing.expectEqual(.write_cache_lost, boot.outcome.?.failed.cause),
        }
    }
    const site: *Site = try .withVersion();
    defer site.destroy();
    const ref = try site.begin(1);
    const boot = site.boot(ref);
    _ = site.boots.takeReport(site.io.now_us, &reportOf(boot));
    const revision = boot.revision;
    const status: core.boot.Guest.CacheStatus = .{ .class = .edge, .state = .read_only };
    site.boots.onWriteCache(boot.identity.id, site.io.now_us, status);
    try testing.expectEqual(status, boot.guest.?.cache_status);
    try testing.expectEqual(revision + 1, boot.revision);
    site.boots.onWriteCache(boot.identity.id, site.io.now_us, status);
    try testing.expectEqual(revision + 1, boot.revision);
}

fn reportOf(boot: *const core.boot.Boot) core.stream.Server.DeviceReport {
    return .{
        .boot_id = boot.identity.id,
        .session_id = 1,
        .request_id = 1,
        .report = .{ .uptime_us = 1 },
    };
}

test "a device that has lost its session is reported, takes an order, and is missed" {
    const site: *Site = try .withVersion();
    defer site.destroy();
    const ref = try site.begin(1);
    const boot = site.boot(ref);
    var said: core.stream.Server.LostReport = .{
        .boot_id = boot.identity.id,
        .nonce = @splat(1),
        .reason = .cache_lost,
        .refusal = null,
        .restart_in_s = 0,
        .order_id = @splat(0),
    };
    // A boot without a session has nothing to lose.
    const candidate_revision = boot.revision;
    try testing.expectEqual(.none, site.boots.takeLost(site.io.now_us, &said).order);
    try testing.expectEqual(null, boot.lost);
    try testing.expectEqual(candidate_revision, boot.revision);
    site.boots.apply(ref, site.io.now_us, opened);
    site.boots.apply(ref, site.io.now_us, .{ .ready = .stream });
    const revision = boot.revision;
    const heard_us = boot.heard_us;
    site.io.now_us += second;
    _ = site.boots.takeLost(site.io.now_us, &said);
    try testing.expectEqual(revision + 1, boot.revision);
    // Whoever sends it may have copied it: the device is not heard by it.
    try testing.expectEqual(heard_us, boot.heard_us);
    const order_id = uuid(77);
    letWait(&site.boots.orders, order_id, boot.identity.id);
    try testing.expectEqual(.restart, site.boots.takeLost(site.io.now_us, &said).order);
    try testing.expectEqual(revision + 1, boot.revision);
    // An order that it was never given is none.
    said.order_id = uuid(78).bytes;
    try testing.expectEqual(.restart, site.boots.takeLost(site.io.now_us, &said).order);
    try testing.expectEqual(null, boot.lost.?.order_id);
    said.order_id = order_id.bytes;
    try testing.expectEqual(.none, site.boots.takeLost(site.io.now_us, &said).order);
    try testing.expect(boot.lost.?.order_id.?.eql(order_id));
    try testing.expectEqual(revision + 2, boot.revision);
    site.io.now_us += 60 * second;
    site.boots.tick(site.io.now_us);
    try testing.expect(boot.lost.?.is_silent);
    try testing.expectEqual(revision + 3, boot.revision);
    // Nothing of it counts once the device has started again.
    site.boots.supersede(site.io.now_us, ref);
    _ = site.boots.takeLost(site.io.now_us, &said);
    try testing.expect(boot.lost.?.is_silent);
    said.boot_id = uuid(99);
    try testing.expectEqual(.none, site.boots.takeLost(site.io.now_us, &said).order);
}

const opened: core.boot.Event =
    .{ .stream_open = .{ .resumed = false, .mtu = 1500, .cipher = .aegis_128l } };

test "the device's own disk is full when it says so, and stays lost" {
    const site: *Site = try .withVersion();
    defer site.destroy();
    site.setCache("device_ram_local_disk", .read_only);
    const ref = try site.begin(1);
    const boot = site.boot(ref);
    const id = boot.identity.id;
    // Nothing is known of a device that has reported nothing.
    site.boots.onLocalDisk(id, site.io.now_us);
    try testing.expectEqual(null, boot.guest);
    var report = reportOf(boot);
    report.report.write_cache_size = 4096;
    report.report.write_cache_used = 4095;
    _ = site.boots.takeReport(site.io.now_us, &report);
    site.boots.onLocalDisk(id, site.io.now_us);
    try testing.expectEqual(.ok, boot.guest.?.cache_status.state);
    try testing.expectEqual(.device_ram_local_disk, boot.guest.?.cache_status.class);
    report.report.write_cache_used = 4096;
    _ = site.boots.takeReport(site.io.now_us, &report);
    site.boots.onLocalDisk(id, site.io.now_us);
    try testing.expectEqual(.read_only, boot.guest.?.cache_status.state);
    boot.assignment.local_disk.?.full = .stop;
    site.boots.onLocalDiskLost(ref, site.io.now_us);
    try testing.expectEqual(.lost, boot.guest.?.cache_status.state);
    site.boots.onLocalDisk(id, site.io.now_us);
    try testing.expectEqual(.lost, boot.guest.?.cache_status.state);
    // A boot that has no such disk cannot lose it.
    const next = try site.begin(1);
    site.boot(next).assignment.local_disk = null;
    site.boots.onLocalDiskLost(next, site.io.now_us);
    try testing.expect(!site.boot(next).isOver());
}

test "reads and used units count until the boot is over" {
    const site: *Site = try .withVersion();
    defer site.destroy();
    try site.publishProfile(8);
    const ref = try site.begin(1);
    const boot = site.boot(ref);
    site.boots.beginProfile(boot);
    try testing.expect(boot.read_ahead.had_profile);
    try testing.expectEqual(1, site.boots.profiles.recording_count);
    var read: core.stream.Server.ReadRequest = undefined;
    read.boot_id = boot.identity.id;
    read.kind = .ahead;
    read.length = 4096;
    read.repeated = false;
    const before = boot.read_ahead;
    site.boots.onRead(ref, &read);
    const after_one = boot.read_ahead;
    try testing.expect(!std.meta.eql(before, after_one));
    read.repeated = true;
    site.boots.onRead(ref, &read);
    try testing.expectEqualDeep(after_one, boot.read_ahead);
    boot.outcome = .ready;
    read.repeated = false;
    site.boots.onRead(ref, &read);
    try testing.expectEqualDeep(after_one, boot.read_ahead);
    try testing.expectEqual(8192, site.boots.profiles.recordings[0].trace.ahead_bytes);
    site.boots.profiles.finish(boot.identity.id);
    try site.publishProfile(0);
    site.setCache("of another year", .stop);
    site.boots.beginProfile(boot);
    try testing.expect(!boot.read_ahead.had_profile);
    try testing.expectEqual(0, site.boots.profiles.recording_count);
}

test "a tick ends silent boots and journals what was counted, and no boot while the edge starts" {
    const site: *Site = try .withVersion();
    defer site.destroy();
    const ref = try site.begin(1);
    const boot = site.boot(ref);
    site.boots.settle(boot);
    site.boots.tick(site.io.now_us + second);
    try testing.expectEqual(1, site.io.compacted);
    const journaled = site.io.journaled;
    boot.touched = true;
    site.boots.tick(site.io.now_us + 2 * second);
    try testing.expectEqual(journaled + 1, site.io.journaled);
    _ = site.addEdge();
    site.peers.starting_until_us = std.math.maxInt(u64);
    site.boots.tick(site.io.now_us + 100_000 * second);
    try testing.expect(!boot.isOver());
    site.peers.starting_until_us = 0;
    site.boots.tick(site.io.now_us + 100_000 * second);
    try testing.expect(boot.isOver());
}

test "a boot in progress whose counters move is reported in between, and less and less often" {
    const site: *Site = try .withVersion();
    defer site.destroy();
    const ref = try site.begin(1);
    const boot = site.boot(ref);
    site.boots.settle(boot);
    const reported = site.io.reported;
    // Nothing moved.
    site.io.now_us += 5 * second;
    site.boots.tick(site.io.now_us);
    try testing.expectEqual(reported, site.io.reported);
    boot.touched = true;
    site.io.is_behind = true;
    site.boots.tick(site.io.now_us);
    try testing.expectEqual(reported, site.io.reported);
    site.io.is_behind = false;
    var reports: u32 = 0;
    for (0..40) |_| {
        site.io.now_us += second;
        boot.touched = true;
        boot.last_us = site.io.now_us - boot.started_us;
        site.boots.tick(site.io.now_us);
        reports = @intCast(site.io.reported - reported);
    }
    // After 1, 4, 8, 14, 22 and 34 s.
    try testing.expectEqual(6, reports);
    boot.outcome = .ready;
    const ended = site.io.reported;
    site.io.now_us += 60 * second;
    boot.touched = true;
    site.boots.tick(site.io.now_us);
    try testing.expectEqual(ended, site.io.reported);
}

test "a ready device that reports no more is reported as silent, once" {
    const site: *Site = try .withVersion();
    defer site.destroy();
    const ref = try site.begin(1);
    const boot = site.boot(ref);
    const now_us = site.io.now_us;
    _ = site.boots.takeReport(now_us, &reportOf(boot));
    site.boots.apply(ref, now_us, .{ .ready = .http });
    const revision = boot.revision;
    site.boots.tick(now_us + core.boot.Guest.silence_us - 1);
    try testing.expectEqual(revision, boot.revision);
    site.boots.tick(now_us + core.boot.Guest.silence_us);
    try testing.expect(boot.guest.?.is_silent);
    try testing.expectEqual(revision + 1, boot.revision);
    site.boots.tick(now_us + 2 * core.boot.Guest.silence_us);
    try testing.expectEqual(revision + 1, boot.revision);
}

test "an unknown device's request for a script is recorded, a known one's is not" {
    const site: *Site = try .create();
    defer site.destroy();
    const now_us = site.io.now_us;
    for ([_]u8{ 1, 9 }) |number|
        site.boots.discoverByHttp(now_us, macOf(number), .init(10, 0, 0, 7), null);
    site.boots.tick(now_us + 3600 * second);
    try testing.expectEqual(1, site.io.discovered);
    site.boots.policy = .nothing;
    site.boots.discoverByHttp(now_us, macOf(8), .init(10, 0, 0, 7), null);
    site.boots.tick(now_us + 7200 * second);
    try testing.expectEqual(1, site.io.discovered);
}

test "an edge judges a device by the edge that keeps its writes" {
    const site: *Site = try .create();
    defer site.destroy();
    const network: base.Ip4 = .init(10, 0, 0, 0);
    for ([_]?u32{ null, 0, 1 }, [_]?u8{ null, 20, 23 }) |home, expected| {
        site.devices[0].home = home;
        try site.decide();
        const asked = site.boots.askedOf(macOf(1), network);
        try testing.expectEqualDeep(if (expected) |number| uuid(number) else null, asked.home);
        try testing.expect(asked.mac.eql(macOf(1)));
        try testing.expect(asked.network.eql(network));
    }
}

test "a boot is announced to the other edges when it begins, is taken, and is withdrawn" {
    const site: *Site = try .withVersion();
    defer site.destroy();
    _ = site.addEdge();
    const ref = try site.begin(1);
    const boot = site.boot(ref);
    const id = boot.identity.id;
    try testing.expectEqual(null, site.peers.own_claims.get(macOf(1), id));
    site.boots.settle(boot);
    try testing.expectEqual(.offered, site.peers.own_claims.get(macOf(1), id).?.stage);
    site.boots.take(ref);
    try testing.expectEqual(.taken, site.peers.own_claims.get(macOf(1), id).?.stage);
    site.boots.withdraw(ref, uuid(23));
    const claim = site.peers.own_claims.get(macOf(1), id);
    try testing.expect(claim == null or claim.?.is_over);
}

test "the firmware's class is a fact of the boot" {
    const site: *Site = try .withVersion();
    defer site.destroy();
    const client = clientOf(1, .discover);
    const ref = site.boots.forDhcp(site.io.now_us, &client, 7, 300).?;
    try testing.expectEqualStrings("PXEClient", site.boot(ref).facts.vendor_class.slice());
}

test "a choice from a menu shows that the loader runs" {
    const site: *Site = try .withVersion();
    defer site.destroy();
    const ref = try site.begin(1);
    site.boots.choose(ref, site.io.now_us, .{ .title = .init("own"), .start = .local_disk });
    try testing.expect(site.boot(ref).record(.loader) != null);
    try testing.expectEqual(.local_disk, std.meta.activeTag(site.boot(ref).outcome.?));
}

test "a profile of one byte is a profile" {
    const site: *Site = try .withVersion();
    defer site.destroy();
    try site.publishProfile(1);
    const boot = site.boot(try site.begin(1));
    site.boots.beginProfile(boot);
    try testing.expect(boot.read_ahead.had_profile);
}

test "an order is confirmed by the device that it was given to, and by no other" {
    const site: *Site = try .withVersion();
    defer site.destroy();
    const boot = site.boot(try site.begin(1));
    const other = site.boot(try site.begin(4));
    letWait(&site.boots.orders, uuid(80), boot.identity.id);
    var report = reportOf(other);
    report.report.order_id = uuid(80).bytes;
    try testing.expectEqual(.none, site.boots.takeReport(site.io.now_us, &report).order);
    try testing.expectEqual(null, other.guest.?.order_id);
    report.boot_id = boot.identity.id;
    report.report.order_id = @splat(0);
    try testing.expectEqual(.restart, site.boots.takeReport(site.io.now_us, &report).order);
    try testing.expectEqual(null, boot.guest.?.order_id);
    report.report.order_id = uuid(80).bytes;
    try testing.expectEqual(.none, site.boots.takeReport(site.io.now_us, &report).order);
    try testing.expect(boot.guest.?.order_id.?.eql(uuid(80)));
}

test "a status of the write cache is journaled, before the boot is ready and after" {
    const site: *Site = try .withVersion();
    defer site.destroy();
    const boot = site.boot(try site.begin(1));
    const id = boot.identity.id;
    _ = site.boots.takeReport(site.io.now_us, &reportOf(boot));
    const journaled = site.io.journaled;
    const status: core.boot.Guest.CacheStatus = .{ .class = .edge, .state = .read_only };
    site.boots.onWriteCache(id, site.io.now_us, status);
    try testing.expectEqual(journaled + 1, site.io.journaled);
    // A device that reports no cache has none that could be full.
    boot.assignment.local_disk = .{ .full = .stop, .limit_bytes = null };
    site.boots.onLocalDisk(id, site.io.now_us);
    try testing.expectEqual(.ok, boot.guest.?.cache_status.state);
    try testing.expect(!boot.isOver());
}

test "a device with a private image stays with the version below it, and fails when that is gone" {
    const site: *Site = try .withVersion();
    defer site.destroy();
    try site.addCaches("private");
    var link: fixture.Link = try .init(site);
    defer link.deinit();
    const first = site.boot(try site.begin(1));
    try testing.expect((try link.open(first)).body == .welcome);
    site.devices[0].versionId = uuid(2);
    site.versions[0].kernelPath = "k";
    try site.decide();
    site.boots.caches.closeAll();
    site.forget(1);
    const kept = site.boot(try site.begin(1));
    try testing.expect(kept.assignment.version_id.eql(uuid(1)));
    try testing.expect(kept.assignment.loader_files.kernel);
    // Every other class follows the desired state.
    site.setCache("edge_persistent", .stop);
    site.forget(1);
    const follows = site.boot(try site.begin(1));
    try testing.expect(follows.assignment.version_id.eql(uuid(2)));
    site.setCache("private", .stop);
    site.io.versions.clear();
    for ([_]@TypeOf(site.io.problem){ .gone, .unreadable }, [_][]const u8{
        "the version below its private image is missing: reset the image",
        "the version is unreadable",
    }) |problem, text| {
        site.io.problem = problem;
        site.forget(1);
        const suspicion = site.boot(try site.begin(1)).suspicion.?;
        try testing.expectEqualStrings(text, suspicion.text.slice());
    }
    // Of a version that is gone, without such an image.
    site.io.problem = .gone;
    site.setCache("edge", .stop);
    site.forget(1);
    const plain = site.boot(try site.begin(1)).suspicion.?;
    try testing.expectEqualStrings("the version is gone", plain.text.slice());
}

test "writes of an unregistered device have no owner among several edges" {
    const site: *Site = try .withVersion();
    defer site.destroy();
    site.state.siteEdges = .{ .key = "", .edges = &.{} };
    site.setCache("edge_persistent", .stop);
    try site.decide();
    const boot = site.boot(try site.begin(1));
    boot.identity.mac = macOf(99);
    const blocker = site.boots.writeOwnerBlocker(boot).?;
    try testing.expectEqualStrings(
        "not registered: none of several edges keeps its writes",
        blocker.text.slice(),
    );
    // Of a class that nobody knows nothing is kept.
    site.setCache("of another year", .stop);
    try testing.expectEqual(null, site.boots.writeOwnerBlocker(boot));
}

test "a tick reports the devices that the report log had no capacity for" {
    const site: *Site = try .create();
    defer site.destroy();
    const now_us = site.io.now_us;
    for ([_]u64{ 256, 255 }, [_]u32{ 0, 1 }) |backlog, discovered| {
        site.io.backlog = backlog;
        if (backlog == 256)
            site.boots.discoverByHttp(now_us, macOf(9), .init(10, 0, 0, 7), null);
        site.boots.tick(now_us + 3600 * second);
        try testing.expectEqual(discovered, site.io.discovered);
    }
}

test "a device that is registered before its report is forgotten without one" {
    const site: *Site = try .create();
    defer site.destroy();
    const now_us = site.io.now_us;
    site.io.backlog = 256;
    site.boots.discoverByHttp(now_us, macOf(9), .init(10, 0, 0, 7), null);
    site.devices[0].mac = macOf(9);
    try site.decide();
    site.io.backlog = 0;
    site.boots.tick(now_us + 3600 * second);
    try testing.expectEqual(0, site.io.discovered);
    for (site.boots.discovery.devices.devices) |device| try testing.expectEqual(null, device);
}

test "a handle is never zero, whatever was drawn" {
    const site: *Site = try .withVersion();
    defer site.destroy();
    for ([_]?u8{ 0, 1 }) |byte| {
        site.io.random_byte = byte;
        const boot = site.boot(try site.begin(1));
        const drawn: u64 = if (byte == 0) 0 else 0x0101_0101_0101_0101;
        try testing.expectEqual(@max(1, drawn), boot.identity.handle);
        site.forget(1);
    }
    site.io.random_handle = 1;
    try testing.expectEqual(1, site.boot(try site.begin(1)).identity.handle);
}

test "used blocks count until the boot is over, and are always the profile's" {
    const site: *Site = try .withVersion();
    defer site.destroy();
    const boot = site.boot(try site.begin(1));
    boot.read_ahead.asked_bytes = 1 << 20;
    var unit: [8]u8 = undefined;
    (stream.profile.Unit{ .index = 0, .blocks = 1 }).encode(&unit);
    for (1..3) |round| {
        site.boots.onUsed(&.{ .boot_id = boot.identity.id, .units = .{ .bytes = &unit } });
        try testing.expectEqual(stream.profile.block_size, boot.read_ahead.used_bytes);
        try testing.expectEqual(round, site.io.used);
        boot.outcome = .ready;
    }
}

test "a boot in silence is journaled with it" {
    const site: *Site = try .withVersion();
    defer site.destroy();
    const ref = try site.begin(1);
    const boot = site.boot(ref);
    _ = site.boots.takeReport(site.io.now_us, &reportOf(boot));
    site.boots.apply(ref, site.io.now_us, .{ .ready = .http });
    const journaled = site.io.journaled;
    site.boots.tick(site.io.now_us + core.boot.Guest.silence_us);
    try testing.expectEqual(journaled + 1, site.io.journaled);
}

test "made-up MAC addresses use up their own part, and registered devices boot" {
    const site: *Site = try .withVersion();
    defer site.destroy();
    site.state.unknownDevices = .boot;
    try site.decide();
    site.boots.table.unregistered_max = 2;
    site.boots.unregistered = try .init(testing.allocator, 2, 1);
    for (11..40) |number| {
        const mac = macOf(@intCast(number));
        if (site.boots.mayBegin(site.io.now_us, mac, null)) _ = try site.begin(@intCast(number));
    }
    try testing.expectEqual(1, site.boots.table.unregistered_count);
    try testing.expectEqual(28, site.boots.ignored.get(.unregistered_limit));
    // One that has a boot continues it, and one that is registered begins it.
    const first = site.boots.table.findByMac(macOf(11)).?;
    try testing.expect(site.boot(first).is_unregistered);
    for ([_]u8{ 11, 1 }) |number|
        try testing.expect(site.boots.mayBegin(site.io.now_us, macOf(number), null));
    try testing.expect(!site.boot(try site.begin(1)).is_unregistered);
    // A repeated request begins a boot once the rate allows it.
    site.io.now_us += 63 * std.time.us_per_s;
    try testing.expect(!site.boots.mayBegin(site.io.now_us, macOf(20), null));
    site.io.now_us += 2 * std.time.us_per_s;
    try testing.expect(site.boots.mayBegin(site.io.now_us, macOf(20), null));
}

test "an order leaves when it is kept for which boot it is, also to a device without a session" {
    const site: *Site = try .withVersion();
    defer site.destroy();
    var link: fixture.Link = try .init(site);
    defer link.deinit();
    const boot = site.boot(try site.begin(1));
    const welcome = try link.open(boot);
    link.ask(&welcome, 1, .{ .report = .{ .uptime_us = 1 } });
    try testing.expectEqual(.none, (try link.answer()).body.report_ack.order);
    try testing.expectEqual(0, site.io.orders_sent);
    letWait(&site.boots.orders, uuid(80), boot.identity.id);
    link.ask(&welcome, 2, .{ .report = .{ .uptime_us = 2 } });
    try testing.expectEqual(.restart, (try link.answer()).body.report_ack.order);
    try testing.expectEqual(1, site.io.orders_sent);
    link.port.server.forget(boot.identity.id);
    var lost: stream.Lost = .{
        .boot_id = boot.identity.id.bytes,
        .nonce = @splat(7),
        .reason = .cache_lost,
        .proof = @splat(0),
    };
    // Whoever does not know the secret learns nothing, and says nothing.
    const forged: stream.Packet = .{ .version = .v3, .body = .{ .lost = lost } };
    site.io.sent.count = 0;
    link.send(fixture.device, forged);
    try testing.expectEqual(0, site.io.sent.count);
    try testing.expectEqual(null, boot.lost);
    const secret = welcome.body.welcome.resume_secret;
    lost.proof = core.stream.seal.lostProof(&secret, &lost);
    link.send(fixture.device, .{ .version = .v3, .body = .{ .lost = lost } });
    try testing.expectEqual(.restart, (try link.answer()).body.lost_ack.order);
    try testing.expectEqual(2, site.io.orders_sent);
    try testing.expectEqual(.cache_lost, boot.lost.?.reason);
}
