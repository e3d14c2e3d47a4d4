//! Tests of stream.zig: what the stream's packets do to a boot, with a device that sends them in
//! clear text.

const std = @import("std");
const base = @import("base");
const core = @import("core");
const store = @import("store");
const wire = @import("wire").stream;
const fixture = @import("agent_test.zig");
const stream = @import("stream.zig");
const testing = std.testing;
const gpa = testing.allocator;
const Site = fixture.Site;
const Link = fixture.Link;

const attacker: base.Endpoint = .{ .ip = .init(10, 77, 0, 66), .port = 40000 };
const device = fixture.device;

test "a session opens with the boot's token, once, and is in the boot and the journal" {
    const site: *Site = try .withVersion();
    defer site.destroy();
    var link: Link = try .init(site);
    defer link.deinit();
    const ref = try site.begin(1);
    const boot = site.boot(ref);
    const welcome = try link.open(boot);
    try testing.expectEqual(1 << 20, welcome.body.welcome.disk_size);
    try testing.expect(boot.stream_was_open);
    try testing.expectEqual(@as([16]u8, @splat(5)), boot.token_nonce.?);
    try testing.expect(boot.facts.ip.?.eql(device.ip));
    try testing.expectEqual(wire.packet_size_ethernet + 28, boot.facts.mtu.?);
    try testing.expectEqual(1, site.boots.profiles.recording_count);
    try testing.expect(site.io.journaled > 0);
    try testing.expect(site.io.sessions_told > 0);
    // Another process with the same token is refused, which its device has overcome long ago.
    const again = Link.helloOf(boot.identity.id, 6, .token, &boot.identity.token);
    try testing.expectEqual(.token_refused, (try link.sayHello(device, again)).body.refuse.code);
    try testing.expectEqual(null, boot.suspicion);
}

test "WELCOME waits for the record of its boot, and on the disk where the writes survive" {
    const site: *Site = try .withVersion();
    defer site.destroy();
    var link: Link = try .init(site);
    defer link.deinit();
    const boot = site.boot(try site.begin(1));
    _ = try link.open(boot);
    try testing.expectEqual(.written, site.io.sent_after.?);
    site.io.sent_after = null;
    const hello = Link.helloOf(boot.identity.id, 6, .token, &boot.identity.token);
    try testing.expectEqual(.token_refused, (try link.sayHello(device, hello)).body.refuse.code);
    try testing.expectEqual(null, site.io.sent_after);
}

test "a session that the journal has no place for does not open, and the next HELLO opens it" {
    const site: *Site = try .withVersion();
    defer site.destroy();
    var link: Link = try .init(site);
    defer link.deinit();
    const boot = site.boot(try site.begin(1));
    site.io.is_journal_full = true;
    const hello = Link.helloOf(boot.identity.id, 5, .token, &boot.identity.token);
    link.send(device, .{ .body = .{ .hello = hello } });
    var with_cookie = hello;
    with_cookie.cookie = (try link.answer()).body.cookie.cookie;
    link.send(device, .{ .body = .{ .hello = with_cookie } });
    try testing.expectEqual(0, site.io.sent.count);
    try testing.expectEqual(null, boot.token_nonce);
    try testing.expectEqual(0, link.port.server.session_count);
    site.io.is_journal_full = false;
    _ = try link.open(boot);
    try testing.expectEqual(@as([16]u8, @splat(5)), boot.token_nonce.?);
}

test "a packet that came after the loop took its time counts like any other" {
    const site: *Site = try .withVersion();
    defer site.destroy();
    var link: Link = try .init(site);
    defer link.deinit();
    const ref = try site.begin(1);
    link.ahead_us = 250;
    const welcome = try link.open(site.boot(ref));
    link.read(&welcome, 1);
    try testing.expect(site.boot(ref).stream_was_open);
    try testing.expectEqual(1, site.boot(ref).record(.stage2).?.reads);
    // The next turn's time may be earlier than what the last one recorded.
    link.ahead_us = 0;
    link.read(&welcome, 2);
    link.port.tick(site.io.now_us);
    site.boots.tick(site.io.now_us);
    try testing.expectEqual(2, site.boot(ref).record(.stage2).?.reads);
    try testing.expect(!site.boot(ref).isOver());
}

test "a wrong token changes no boot, unless it comes from the device itself" {
    const site: *Site = try .withVersion();
    defer site.destroy();
    var link: Link = try .init(site);
    defer link.deinit();
    const ref = try site.begin(1);
    const boot = site.boot(ref);
    const wrong = Link.helloOf(boot.identity.id, 5, .token, "0123456789abcdef");
    try testing.expectEqual(.token_refused, (try link.sayHello(attacker, wrong)).body.refuse.code);
    try testing.expectEqual(null, boot.suspicion);
    boot.facts.ip = device.ip;
    _ = try link.sayHello(attacker, wrong);
    try testing.expectEqual(null, boot.suspicion);
    _ = try link.sayHello(device, wrong);
    try testing.expectEqual(.token_refused, boot.suspicion.?.cause);
    try testing.expect(!boot.stream_was_open);
    try testing.expectEqual(null, boot.token_nonce);
    // A boot that nobody knows.
    const unknown = Link.helloOf(fixture.uuid(99), 5, .token, "0123456789abcdef");
    try testing.expectEqual(.token_refused, (try link.sayHello(device, unknown)).body.refuse.code);
}

test "a superseded boot opens no session, and one whose version is missing fails" {
    const site: *Site = try .withVersion();
    defer site.destroy();
    var link: Link = try .init(site);
    defer link.deinit();
    const first = try site.begin(1);
    site.boots.apply(first, site.io.now_us, .{ .loader_begin = .script });
    const missing = try site.begin(1);
    site.boots.supersede(site.io.now_us, first);
    const old = site.boot(first);
    try testing.expectEqual(.token_refused, (try link.open(old)).body.refuse.code);
    site.io.versions.clear();
    const boot = site.boot(missing);
    try testing.expectEqual(.version_missing, (try link.open(boot)).body.refuse.code);
    try testing.expectEqual(.version_missing, boot.outcome.?.failed.cause);
}

test "an edge without write caches serves a device that keeps its own writes, and no other" {
    const site: *Site = try .withVersion();
    defer site.destroy();
    var link: Link = try .init(site);
    defer link.deinit();
    site.vdisks[0].writeCache = .{ .class = "edge", .full = .stop };
    const boot = site.boot(try site.begin(1));
    // Without the proof nobody learns of it.
    const wrong = Link.helloOf(boot.identity.id, 5, .token, "0123456789abcdef");
    try testing.expectEqual(.token_refused, (try link.sayHello(device, wrong)).body.refuse.code);
    try testing.expect(!boot.isOver());
    try testing.expectEqual(.cache_failed, (try link.open(boot)).body.refuse.code);
    try testing.expectEqual(.write_cache_unusable, boot.outcome.?.failed.cause);
    site.vdisks[0].writeCache = null;
    const next = site.boot(try site.begin(1));
    try testing.expect((try link.open(next)).body == .welcome);
}

test "a boot whose writes another edge keeps is refused with that edge's name" {
    const site: *Site = try .withVersion();
    defer site.destroy();
    var link: Link = try .init(site);
    defer link.deinit();
    site.vdisks[0].writeCache = .{ .class = "edge_persistent", .full = .stop };
    site.devices[0].home = 1;
    const boot = site.boot(try site.begin(1));
    try testing.expectEqual(.cache_failed, (try link.open(boot)).body.refuse.code);
    const failure = boot.outcome.?.failed;
    try testing.expectEqual(.writes_at_another_edge, failure.cause);
    try testing.expectEqualStrings("its writes are kept at the edge north", failure.text.slice());
}

test "the writer of a version that was sealed meanwhile has to start again" {
    const site: *Site = try .create();
    defer site.destroy();
    const version = site.open(3);
    version.layer_above = fixture.uuid(2);
    var link: Link = try .init(site);
    defer link.deinit();
    const boot = site.boot(try site.begin(4));
    version.layer_above = null;
    try testing.expectEqual(.cache_failed, (try link.open(boot)).body.refuse.code);
    try testing.expectEqualStrings(
        "the version is sealed: start the device again",
        boot.outcome.?.failed.text.slice(),
    );
}

test "a READ is handed on and counted, its copy as a retransmission, and its answer as traffic" {
    const site: *Site = try .withVersion();
    defer site.destroy();
    var link: Link = try .init(site);
    defer link.deinit();
    const ref = try site.begin(1);
    const boot = site.boot(ref);
    const welcome = try link.open(boot);
    link.read(&welcome, 1);
    try testing.expectEqual(1, site.io.reads);
    const stage2 = boot.record(.stage2).?;
    try testing.expectEqual(1, stage2.reads);
    try testing.expectEqual(0, stage2.traffic.retries);
    link.read(&welcome, 1);
    try testing.expectEqual(2, site.io.reads);
    try testing.expectEqual(1, stage2.traffic.retries);
    // Nothing of it was sent yet: no loss.
    site.io.reading = true;
    const packets_in = stage2.traffic.packets_in;
    link.read(&welcome, 1);
    try testing.expectEqual(2, site.io.reads);
    try testing.expectEqual(1, stage2.traffic.retries);
    try testing.expectEqual(packets_in + 1, stage2.traffic.packets_in);
}

test "a device's READY ends its boot, and is acknowledged each time" {
    const site: *Site = try .withVersion();
    defer site.destroy();
    var link: Link = try .init(site);
    defer link.deinit();
    const ref = try site.begin(1);
    const boot = site.boot(ref);
    const welcome = try link.open(boot);
    const ready: wire.Packet = .{
        .session_id = welcome.session_id,
        .request_id = 2,
        .body = .{ .ready = .{ .outcome = .ready, .uptime_us = 1 } },
    };
    link.send(device, ready);
    try testing.expect((try link.answer()).body == .ready_ack);
    try testing.expectEqual(.ready, std.meta.activeTag(boot.outcome.?));
    try testing.expectEqual(0, site.boots.profiles.recording_count);
    const revision = boot.revision;
    link.send(device, ready);
    try testing.expect((try link.answer()).body == .ready_ack);
    try testing.expectEqual(revision, boot.revision);
}

test "a device that gave up says why" {
    const site: *Site = try .withVersion();
    defer site.destroy();
    var link: Link = try .init(site);
    defer link.deinit();
    const ref = try site.begin(1);
    const boot = site.boot(ref);
    const welcome = try link.open(boot);
    var ready: wire.Ready = .{ .outcome = .failed, .uptime_us = 1, .sentence = "no space" };
    ready.code[0.."cache_full".len].* = "cache_full".*;
    link.send(device, .{
        .session_id = welcome.session_id,
        .request_id = 2,
        .body = .{ .ready = ready },
    });
    try testing.expectEqual(.write_cache_full, boot.outcome.?.failed.cause);
    try testing.expectEqual(1, site.boots.profiles.recording_count);
}

test "a READ whose bytes are not available is refused with its reason" {
    const site: *Site = try .withVersion();
    defer site.destroy();
    var link: Link = try .init(site);
    defer link.deinit();
    const ref = try site.begin(1);
    const boot = site.boot(ref);
    const welcome = try link.open(boot);
    var request: core.stream.Server.ReadRequest = undefined;
    request.session_id = welcome.session_id;
    request.boot_id = boot.identity.id;
    request.request_id = 3;
    request.offset = 0;
    const now_us = site.io.now_us;
    for (
        [_]stream.ReadError{ error.StoreError, error.Lost, error.Stopped },
        [_]wire.ReadErrorCode{ .store_error, .cache_lost, .stopped },
    ) |why, code| {
        link.port.refuseRead(&request, why, now_us);
        try testing.expectEqual(code, (try link.answer()).body.read_error.code);
    }
    try testing.expectEqual(1, link.port.store_errors.total);
    try testing.expectEqual(1, boot.store_errors);
    // Its session is gone: nobody is answered.
    request.session_id = 0;
    link.port.refuseRead(&request, error.StoreError, now_us);
    try testing.expectEqual(0, site.io.sent.count);
}

/// A device whose writes stay at the edge, and the edge's store on a real directory. A turn takes
/// one datagram.
const FlushFixture = struct {
    site: *Site,
    link: Link,
    tmp: testing.TmpDir,
    on: *store.LinuxFiles,
    client: core.stream.Client,
    sent_by_device: u32 = 0,
    sent_by_edge: u32 = 0,

    var syncs: u32 = 0;
    var vtable: store.Files.VTable = undefined;

    fn init(class: []const u8) !FlushFixture {
        const site: *Site = try .withVersion();
        errdefer site.destroy();
        const tmp = testing.tmpDir(.{});
        const on = try gpa.create(store.LinuxFiles);
        on.* = .fromFd(tmp.dir.handle);
        var files = on.files();
        vtable = files.vtable.*;
        vtable.sync = countSync;
        vtable.syncDir = countSyncDir;
        files.vtable = &vtable;
        site.boots.caches = try .init(gpa, &site.io, files, 4, .{ .class = .edge });
        site.vdisks[0].writeCache = .{ .class = class, .full = .stop };
        var flushing: FlushFixture = .{
            .site = site,
            .link = try .init(site),
            .tmp = tmp,
            .on = on,
            .client = try .init(gpa, .{ .writes_max = 4, .ciphers = .{ .clear = true } }),
        };
        const identity = site.boot(try site.begin(1)).identity;
        flushing.client.start(site.io.now_us, .{
            .boot_id = identity.id,
            .token = identity.token,
            .nonce_seed = @splat(7),
        });
        return flushing;
    }

    fn deinit(flushing: *FlushFixture) void {
        flushing.client.deinit(gpa);
        flushing.link.deinit();
        flushing.site.destroy();
        gpa.destroy(flushing.on);
        flushing.tmp.cleanup();
    }

    fn countSync(_: *anyopaque, _: store.files.Handle) store.files.Error!void {
        syncs += 1;
    }

    fn countSyncDir(_: *anyopaque, _: []const u8) store.files.Error!void {
        syncs += 1;
    }

    /// Carries datagrams, without a tick and without time passing, until neither side has more.
    fn settle(flushing: *FlushFixture) void {
        const io = &flushing.site.io;
        var out: [wire.sealed_request_size_max]u8 = undefined;
        while (flushing.client.transmit(io.now_us, &out)) |packet| {
            flushing.sent_by_device += 1;
            const datagram: stream.Datagram =
                .{ .from = device, .bytes = packet, .at_us = io.now_us };
            flushing.link.port.receive(&datagram, io.now_us);
            flushing.site.sync(&flushing.link.port);
            for (io.sent.buffer[0..io.sent.count]) |*sent| {
                flushing.sent_by_edge += 1;
                flushing.client.receive(io.now_us, sent.bytes());
            }
            io.sent.count = 0;
        }
    }

    fn expectDone(flushing: *FlushFixture, tag: u64) !void {
        const event = flushing.client.nextEvent() orelse return error.NotDone;
        try testing.expectEqual(tag, event.write_ended.tag);
        try testing.expectEqual(.done, event.write_ended.code);
    }
};

test "a flushed 4 KiB write of class edge takes six datagrams, and no tick or sync" {
    var flushing: FlushFixture = try .init("edge");
    defer flushing.deinit();
    flushing.settle();
    try testing.expect(flushing.client.nextEvent().? == .established);
    FlushFixture.syncs = 0;
    const block: [4096]u8 = @splat(3);
    for (0..32) |turn| {
        flushing.sent_by_device = 0;
        flushing.sent_by_edge = 0;
        try flushing.client.submitWrite(2 * turn, (turn * 37 % 256) * block.len, &block);
        flushing.settle();
        try flushing.expectDone(2 * turn);
        // Three fragments and their one acknowledgement.
        try testing.expectEqual(3, flushing.sent_by_device);
        try testing.expectEqual(1, flushing.sent_by_edge);
        try flushing.client.submitFlush(2 * turn + 1);
        flushing.settle();
        try flushing.expectDone(2 * turn + 1);
        try testing.expectEqual(4, flushing.sent_by_device);
        try testing.expectEqual(2, flushing.sent_by_edge);
    }
    try testing.expectEqual(0, flushing.site.io.works.count);
    try testing.expectEqual(0, FlushFixture.syncs);
}

fn codeOf(link: *Link) !wire.WriteCode {
    return (try link.answer()).body.write_ack.code;
}

fn byteOf(site: *Site, boot: *const core.boot.Boot, sector: u64) !u8 {
    var bytes: [wire.sector_size]u8 = undefined;
    const layer = site.boots.caches.find(boot.identity.id).?;
    try layer.inner.read(&bytes, sector * wire.sector_size);
    return bytes[bytes.len - 1];
}

test "a write is kept at the edge before it is acknowledged, a durable one after its sync" {
    for ([_][]const u8{ "edge", "edge_persistent" }, [_]bool{ false, true }) |class, is_durable| {
        const site: *Site = try .withVersion();
        defer site.destroy();
        try site.addCaches(class);
        var link: Link = try .init(site);
        defer link.deinit();
        const boot = site.boot(try site.begin(1));
        const welcome = try link.open(boot);
        try testing.expectEqualStrings(class, @tagName(welcome.body.welcome.write_cache));
        for (1..3) |number| {
            link.write(&welcome, @intCast(number), @intCast(number));
            try testing.expectEqual(0, site.io.sent.count);
            try site.endWrite(&link.port);
            try testing.expectEqual(is_durable, site.io.sent.count == 0);
            site.sync(&link.port);
            try testing.expectEqual(.done, try codeOf(&link));
            try testing.expectEqual(number, try byteOf(site, boot, number));
        }
        link.control(&welcome, 3, .flush);
        site.sync(&link.port);
        try testing.expectEqual(.done, try codeOf(&link));
        link.control(&welcome, 4, .discard);
        site.sync(&link.port);
        try testing.expectEqual(.done, try codeOf(&link));
        try testing.expectEqual(0, try byteOf(site, boot, 1));
        try testing.expect(!boot.isOver());
        const layer = site.boots.caches.find(boot.identity.id).?;
        try testing.expectEqual(0, layer.waiting_count);
        try testing.expect(!layer.is_syncing);
    }
}

test "a write that does not fit, or that cannot be synced, ends a boot that is not ready" {
    const site: *Site = try .withVersion();
    defer site.destroy();
    try site.addCaches("edge");
    var link: Link = try .init(site);
    defer link.deinit();
    const boot = site.boot(try site.begin(1));
    const welcome = try link.open(boot);
    const layer = site.boots.caches.find(boot.identity.id).?;
    layer.is_closed = true;
    link.write(&welcome, 1, 1);
    try testing.expectEqual(.stopped, try codeOf(&link));
    try testing.expectEqual(.write_cache_full, boot.outcome.?.failed.cause);
    site.setCache("edge_persistent", .stop);
    site.forget(1);
    const durable = site.boot(try site.begin(1));
    const next = try link.open(durable);
    link.write(&next, 1, 1);
    try site.endWrite(&link.port);
    site.boots.caches.beginWorks();
    const work = site.io.nextWork().?;
    const failing = work.layer;
    failing.result = error.DiskFailed;
    link.port.endWork(work, site.io.now_us);
    try testing.expectEqual(.cache_lost, try codeOf(&link));
    try testing.expectEqual(.write_cache_lost, durable.outcome.?.failed.cause);
    try testing.expect(!failing.is_syncing);
}

test "a write to a layer that is gone is refused as lost" {
    const site: *Site = try .withVersion();
    defer site.destroy();
    try site.addCaches("edge");
    var link: Link = try .init(site);
    defer link.deinit();
    const boot = site.boot(try site.begin(1));
    const welcome = try link.open(boot);
    site.boots.caches.closeAll();
    link.write(&welcome, 1, 1);
    try testing.expectEqual(.cache_lost, try codeOf(&link));
}

fn reportBy(link: *Link, welcome: *const wire.Packet, request_id: u32, report: wire.Report) void {
    link.ask(welcome, request_id, .{ .report = report });
}

test "a report tells how full the cache at the edge is, with the device's memory above it" {
    for ([_][]const u8{ "edge", "device_ram_overflow" }, [_]u64{ 0, 4096 }) |class, memory| {
        const site: *Site = try .withVersion();
        defer site.destroy();
        try site.addCaches(class);
        site.vdisks[0].writeCache.?.limitBytes = 512 << 10;
        var link: Link = try .init(site);
        defer link.deinit();
        const boot = site.boot(try site.begin(1));
        const welcome = try link.open(boot);
        const layer = site.boots.caches.find(boot.identity.id).?;
        const limit = layer.inner.head.limit_bytes;
        link.write(&welcome, 1, 1);
        try site.endWrite(&link.port);
        _ = try codeOf(&link);
        const report: wire.Report =
            .{ .uptime_us = 1, .write_cache_used = 1024, .write_cache_size = 4096 };
        reportBy(&link, &welcome, 2, report);
        try testing.expectEqual(.none, (try link.answer()).body.report_ack.order);
        const cache = boot.guest.?.write_cache.?;
        try testing.expectEqual(limit + memory, cache.size);
        try testing.expect(layer.inner.usedBytes() > 0);
        try testing.expectEqual(layer.inner.usedBytes() + memory / 4, cache.used);
        try testing.expectEqualStrings(class, @tagName(boot.guest.?.cache_status.class));
        // One that was full stays full until the device starts again.
        layer.is_closed = true;
        reportBy(&link, &welcome, 3, report);
        try testing.expectEqual(limit + memory / 4, boot.guest.?.write_cache.?.used);
    }
}

test "a report of a device with a disk of its own tells when that is full" {
    const site: *Site = try .withVersion();
    defer site.destroy();
    site.setCache("device_ram_local_disk", .read_only);
    var link: Link = try .init(site);
    defer link.deinit();
    const boot = site.boot(try site.begin(1));
    const welcome = try link.open(boot);
    reportBy(&link, &welcome, 1, .{
        .uptime_us = 1,
        .write_cache_used = 4096,
        .write_cache_size = 4096,
    });
    try testing.expectEqual(.read_only, boot.guest.?.cache_status.state);
    // Its disk fails, and the device says so when it is ready as well.
    link.ask(&welcome, 2, .{ .ready = .{ .outcome = .ready, .uptime_us = 1 } });
    for ([_][]const u8{ "no_root", "cache_lost" }, 3..) |code, request_id| {
        try testing.expectEqual(.read_only, boot.guest.?.cache_status.state);
        var failed: wire.Ready = .{ .outcome = .failed, .uptime_us = 1, .sentence = "x" };
        @memcpy(failed.code[0..code.len], code);
        link.ask(&welcome, @intCast(request_id), .{ .ready = failed });
    }
    try testing.expectEqual(.lost, boot.guest.?.cache_status.state);
}

test "a device that does not know another edge is asked for HELLO, and told to which it may go" {
    const site: *Site = try .withVersion();
    defer site.destroy();
    var link: Link = try .init(site);
    defer link.deinit();
    const ref = try site.begin(1);
    const boot = site.boot(ref);
    const welcome = try link.open(boot);
    const report: wire.Report = .{ .uptime_us = 1 };
    reportBy(&link, &welcome, 1, report);
    try testing.expect((try link.answer()).body == .report_ack);
    _ = site.addEdge();
    reportBy(&link, &welcome, 2, report);
    try testing.expect((try link.answer()).body == .no_session);
    const again = try link.returnOf(boot, 7);
    const given = again.body.welcome.failover.?;
    try testing.expect(given.edges.constSlice()[0].eql(fixture.other_edge));
    reportBy(&link, &again, 3, report);
    try testing.expect((try link.answer()).body == .report_ack);
    // A boot that the table has forgotten fails over nowhere.
    link.port.server.sessionOf(boot.identity.id).?.failover = null;
    site.boots.table.remove(ref);
    reportBy(&link, &again, 4, report);
    try testing.expect((try link.answer()).body == .report_ack);
}

test "a device whose writes are here is never asked for HELLO: it cannot fail over" {
    const site: *Site = try .withVersion();
    defer site.destroy();
    try site.addCaches("edge");
    var link: Link = try .init(site);
    defer link.deinit();
    const boot = site.boot(try site.begin(1));
    const welcome = try link.open(boot);
    _ = site.addEdge();
    reportBy(&link, &welcome, 1, .{ .uptime_us = 1 });
    try testing.expect((try link.answer()).body == .report_ack);
}

test "HELLO and its answer are packets and traffic of the boot, and its end is journaled" {
    const site: *Site = try .withVersion();
    defer site.destroy();
    var link: Link = try .init(site);
    defer link.deinit();
    const boot = site.boot(try site.begin(1));
    boot.touched = true;
    const journaled = site.io.journaled;
    _ = try link.open(boot);
    try testing.expect(site.io.journaled > journaled);
    try testing.expect(!boot.touched or boot.record(.stage2) == null);
    try testing.expectEqual(.stream_hello, boot.last_packets.from_device.?.packet.name);
    try testing.expectEqual(.stream_answer, boot.last_packets.from_edge.?.packet.name);
    const traffic = boot.record(.breather).?.traffic;
    try testing.expectEqual([_]u64{ 1, 1 }, [_]u64{ traffic.packets_in, traffic.packets_out });
    try testing.expectEqual(wire.hello_size, traffic.bytes_in);
    try testing.expect(traffic.bytes_out > 0);
    try testing.expectEqual(0, boot.reconnects);
    try testing.expectEqual(null, boot.resumed_us);
    // A resumption opens no profile, and is a return only where writes are kept.
    const recorded = site.boots.profiles.recording_count;
    _ = try link.returnOf(boot, 6);
    try testing.expectEqual(1, boot.reconnects);
    try testing.expectEqual(null, boot.resumed_us);
    try testing.expectEqual(recorded, site.boots.profiles.recording_count);
    try testing.expectEqual(1500, boot.facts.mtu.?);
}

test "the return of a device whose writes are here is reported" {
    const site: *Site = try .withVersion();
    defer site.destroy();
    try site.addCaches("edge");
    var link: Link = try .init(site);
    defer link.deinit();
    const boot = site.boot(try site.begin(1));
    _ = try link.open(boot);
    try testing.expectEqual(null, boot.resumed_us);
    site.io.now_us += 9;
    const reported = site.io.reported;
    _ = try link.returnOf(boot, 6);
    try testing.expectEqual(9, boot.resumed_us.?);
    try testing.expectEqual(reported + 1, site.io.reported);
}

test "larger packets than Ethernet's are no fact of the path before they have arrived" {
    const site: *Site = try .withVersion();
    defer site.destroy();
    var link: Link = try .init(site);
    defer link.deinit();
    const boot = site.boot(try site.begin(1));
    var hello = Link.helloOf(boot.identity.id, 5, .token, &boot.identity.token);
    hello.packet_size_max = wire.packet_size_max;
    hello.proof = core.stream.seal.helloProof(&boot.identity.token, &hello);
    _ = try link.sayHello(device, hello);
    try testing.expectEqual(1500, boot.facts.mtu.?);
}

test "a device without a cipher in common is refused, and told so at its boot" {
    const site: *Site = try .withVersion();
    defer site.destroy();
    var link: Link = try .init(site);
    defer link.deinit();
    link.port.server.options.ciphers = .{};
    const boot = site.boot(try site.begin(1));
    try testing.expectEqual(.no_cipher, (try link.open(boot)).body.refuse.code);
    try testing.expectEqual(.stream_unreachable, boot.outcome.?.failed.cause);
}

test "a READ's size, place and fragments are the boot's, and a new one restarts nothing" {
    const site: *Site = try .withVersion();
    defer site.destroy();
    var blocks: [2]core.boot.BlockChains.Block = undefined;
    site.boots.reads = try .init(gpa, &blocks, 1);
    var link: Link = try .init(site);
    defer link.deinit();
    const ref = try site.begin(1);
    const boot = site.boot(ref);
    const welcome = try link.open(boot);
    const read: wire.Read = .{
        .version_tag = welcome.body.welcome.version_tag,
        .offset = 8192,
        .length = 4096,
        .fragment_size = 1024,
    };
    link.ask(&welcome, 1, .{ .read = read });
    try testing.expectEqual(1024 + wire.header_size + 28, boot.facts.mtu.?);
    try testing.expectEqual(.stream_read, boot.last_packets.from_device.?.packet.name);
    try testing.expectEqual(8192, boot.last_packets.from_device.?.packet.number);
    try testing.expectEqual(1, boot.read_ahead.waited_reads);
    const stage2 = boot.record(.stage2).?;
    try testing.expectEqual(0, stage2.traffic.missing_fragments);
    const before = stage2.traffic;
    var request = site.io.last_read.?;
    request.packets_out = 4;
    request.bytes_out = 4096;
    const arrival: stream.Arrival = .{ .size = 50, .at_us = site.io.now_us };
    const sample: core.boot.ReadTimes.ReadSample =
        .{ .is_cold = false, .storage_us = 3, .send_us = 40 };
    try testing.expectEqual(1, boot.series.reads_in_flight);
    link.port.onAnswered(&request, arrival, site.io.now_us, sample);
    try testing.expectEqual(0, boot.series.reads_in_flight);
    try testing.expectEqual(before.bytes_in + 50, stage2.traffic.bytes_in);
    try testing.expectEqual(before.packets_in + 1, stage2.traffic.packets_in);
    try testing.expectEqual(4, stage2.traffic.packets_out);
    try testing.expectEqual(4096 + 4 * wire.header_size, stage2.traffic.bytes_out);
    try testing.expectEqual(.stream_bytes, boot.last_packets.from_edge.?.packet.name);
    try testing.expectEqual(8192, boot.last_packets.from_edge.?.packet.number);
    try testing.expectEqual(4096, boot.read_times.initramfs.bytes);
    // Retransmitted, it misses what was sent; its time says nothing of the store.
    link.ask(&welcome, 1, .{ .read = read });
    try testing.expectEqual(site.io.last_read.?.packets_out, stage2.traffic.missing_fragments);
    try testing.expectEqual(4, stage2.traffic.missing_fragments);
    request.repeated = true;
    const again: stream.Arrival = .{ .size = 50, .at_us = arrival.at_us + 700 };
    link.port.onAnswered(&request, again, site.io.now_us, sample);
    try testing.expectEqual(4096, boot.read_times.initramfs.bytes);
    // It has cost the time until then.
    try testing.expectEqual(700, boot.read_times.initramfs.late.sum_us);
    // One that nobody answers is counted as it came.
    const sent = stage2.traffic;
    link.port.onUnanswered(&request, arrival);
    try testing.expectEqual(sent.packets_in + 1, stage2.traffic.packets_in);
    try testing.expectEqual(sent.bytes_out, stage2.traffic.bytes_out);
    try testing.expectEqual(sent.packets_out, stage2.traffic.packets_out);
    // After the boot, nothing more.
    request.repeated = false;
    site.boots.apply(ref, site.io.now_us, .{ .ready = .stream });
    link.port.onAnswered(&request, arrival, site.io.now_us, sample);
    try testing.expectEqual(4096, boot.read_times.initramfs.bytes);
    const slot = &site.boots.reads.slots[boot.read_log_slot];
    try testing.expectEqual(core.boot.read_list.record_size, slot.chain.size);
}

test "a READ that a shard serves is the boot's like any other" {
    const site: *Site = try .withVersion();
    defer site.destroy();
    var link: Link = try .init(site);
    defer link.deinit();
    const ref = try site.begin(1);
    const boot = site.boot(ref);
    const welcome = try link.open(boot);
    link.read(&welcome, 1);
    boot.failover = .{ .number = 1, .from_edge = fixture.uuid(23), .at_us = 0 };
    const session = link.port.server.sessionOf(boot.identity.id).?;
    const at_us = site.io.now_us + 5;
    link.port.onShardRead(&site.io.last_read.?, ref, .{ .size = 50, .at_us = at_us });
    try testing.expectEqual(2, boot.record(.stage2).?.reads);
    try testing.expect(boot.failover.?.is_confirmed);
    try testing.expectEqual(at_us, session.last_packet_at_us);
}

test "a READ of a boot that is forgotten ends its session, one for the profile is handed on" {
    const site: *Site = try .withVersion();
    defer site.destroy();
    try site.publishProfile(4096);
    var link: Link = try .init(site);
    defer link.deinit();
    const ref = try site.begin(1);
    const id = site.boot(ref).identity.id;
    const welcome = try link.open(site.boot(ref));
    link.ask(&welcome, 1, .{ .read = .{
        .kind = .profile,
        .version_tag = welcome.body.welcome.version_tag,
        .offset = 0,
        .length = 512,
        .fragment_size = 1024,
    } });
    try testing.expectEqual(1, site.io.profiles_sent);
    try testing.expectEqual(4096, site.io.profile_sent_size);
    try testing.expectEqual(0, site.io.reads);
    site.boots.table.remove(ref);
    link.read(&welcome, 2);
    try testing.expectEqual(0, site.io.reads);
    try testing.expectEqual(null, link.port.server.sessionOf(id));
}

test "a probe is answered with a packet of its size, and used blocks are counted" {
    const site: *Site = try .withVersion();
    defer site.destroy();
    var link: Link = try .init(site);
    defer link.deinit();
    const boot = site.boot(try site.begin(1));
    const welcome = try link.open(boot);
    link.ask(&welcome, 1, .{ .probe = .{ .size = 1000 } });
    try testing.expectEqual(1000, site.io.sent.buffer[0].size);
    try testing.expect(site.io.sent.buffer[0].to.eql(device));
    boot.read_ahead.asked_bytes = 1 << 20;
    var unit: [8]u8 = undefined;
    (wire.profile.Unit{ .index = 0, .blocks = 3 }).encode(&unit);
    for (2..4) |request_id| {
        link.ask(&welcome, @intCast(request_id), .{ .used = .{ .units = .{ .bytes = &unit } } });
        try testing.expectEqual(2 * wire.profile.block_size, boot.read_ahead.used_bytes);
        boot.outcome = .ready;
    }
    try testing.expectEqual(2, site.io.used);
}

test "what the edge sends for a READ that it refuses, or for READY, is among the last packets" {
    const site: *Site = try .withVersion();
    defer site.destroy();
    try site.addCaches("edge");
    var link: Link = try .init(site);
    defer link.deinit();
    const boot = site.boot(try site.begin(1));
    const welcome = try link.open(boot);
    link.read(&welcome, 1);
    link.port.refuseRead(&site.io.last_read.?, error.StoreError, site.io.now_us);
    try testing.expectEqual(.stream_store_error, boot.last_packets.from_edge.?.packet.name);
    link.ask(&welcome, 2, .{ .ready = .{ .outcome = .ready, .uptime_us = 1 } });
    try testing.expectEqual(.stream_ready, boot.last_packets.from_device.?.packet.name);
    try testing.expectEqual(.stream_ready_ack, boot.last_packets.from_edge.?.packet.name);
    // A layer that is lost is known to its boot with the first READ that needs it.
    reportBy(&link, &welcome, 3, .{ .uptime_us = 1 });
    site.boots.caches.find(boot.identity.id).?.inner.is_lost = true;
    link.port.refuseRead(&site.io.last_read.?, error.Lost, site.io.now_us);
    try testing.expectEqual(.lost, boot.guest.?.cache_status.state);
}

test "a tick ends idle sessions, tells of them, and closes the layers of boots that are gone" {
    const site: *Site = try .withVersion();
    defer site.destroy();
    try site.addCaches("edge");
    var link: Link = try .init(site);
    defer link.deinit();
    const ref = try site.begin(1);
    const id = site.boot(ref).identity.id;
    _ = try link.open(site.boot(ref));
    const told = site.io.sessions_told;
    link.port.tick(site.io.now_us + 1);
    try testing.expectEqual(told + 1, site.io.sessions_told);
    try testing.expect(link.port.server.sessionOf(id) != null);
    site.boots.table.remove(ref);
    const idle_us = link.port.server.options.session_idle_us;
    link.port.tick(site.io.now_us + idle_us);
    try testing.expectEqual(null, link.port.server.sessionOf(id));
    try testing.expectEqual(null, site.boots.caches.find(id));
}

test "a durable layer whose device is silent is closed, and its session with it" {
    const site: *Site = try .withVersion();
    defer site.destroy();
    try site.addCaches("edge_persistent");
    var link: Link = try .init(site);
    defer link.deinit();
    const boot = site.boot(try site.begin(1));
    _ = try link.open(boot);
    link.port.tick(site.io.now_us + 30 * std.time.us_per_s - 1);
    try testing.expect(site.boots.caches.find(boot.identity.id) != null);
    link.port.tick(site.io.now_us + 30 * std.time.us_per_s);
    try testing.expectEqual(null, site.boots.caches.find(boot.identity.id));
    try testing.expectEqual(null, link.port.server.sessionOf(boot.identity.id));
}

test "after a start, devices are heard for twelve seconds before a version is said to be unwritten" {
    const site: *Site = try .withVersion();
    defer site.destroy();
    try site.addCaches("edge");
    var link: Link = try .init(site);
    defer link.deinit();
    const start_us = site.io.now_us;
    const heard_us = 12 * std.time.us_per_s;
    site.io.held = .{ .version = fixture.uuid(3) };
    link.port.tick(start_us);
    link.port.tick(start_us + heard_us - 1);
    try testing.expectEqual(null, site.io.answer);
    try testing.expectEqual(null, site.io.written);
    link.port.tick(start_us + heard_us);
    try testing.expectEqual(.held, site.io.answer.?);
    try testing.expect(site.io.written != null);
    try testing.expect(site.boots.caches.held_version.?.eql(fixture.uuid(3)));
    // As long as it is asked for.
    link.port.tick(start_us + heard_us + 1);
    try testing.expect(site.boots.caches.held_version != null);
    site.io.held = null;
    site.io.answer = null;
    link.port.tick(start_us + heard_us + 2);
    try testing.expectEqual(null, site.boots.caches.held_version);
    try testing.expectEqual(null, site.io.answer);
}

test "a device's writes are held at once by an edge that does not own them" {
    const site: *Site = try .withVersion();
    defer site.destroy();
    var link: Link = try .init(site);
    defer link.deinit();
    site.io.held = .{ .device = fixture.uuid(11) };
    const HoldAnswer = @import("write_caches.zig").HoldAnswer;
    for ([_]?u32{ 0, 1 }, [_]HoldAnswer{ .waiting, .held }) |home, answer| {
        site.devices[0].home = home;
        try site.decide();
        link.port.tick(site.io.now_us);
        try testing.expectEqual(answer, site.io.answer.?);
    }
}

test "a boot that failed for its cache's sake says why at its boot, and its text is the layer's" {
    const site: *Site = try .withVersion();
    defer site.destroy();
    try site.addCaches("edge");
    var link: Link = try .init(site);
    defer link.deinit();
    const boot = site.boot(try site.begin(1));
    _ = try link.open(boot);
    // The layer is gone: what was written must not come back without it.
    site.boots.caches.closeAll();
    try testing.expectEqual(.cache_lost, (try link.returnOf(boot, 6)).body.refuse.code);
    try testing.expectEqual(.write_cache_lost, boot.outcome.?.failed.cause);
}

test "an edge that can keep writes gives a ticket to the device that keeps its own" {
    const site: *Site = try .withVersion();
    defer site.destroy();
    try site.addCaches("device_ram");
    _ = site.addEdge();
    var link: Link = try .init(site);
    defer link.deinit();
    const welcome = try link.open(site.boot(try site.begin(1)));
    const given = welcome.body.welcome.failover.?;
    try testing.expect(given.edges.constSlice()[0].eql(fixture.other_edge));
}
