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
    try testing.expectEqual(.device_ram, site.io.profile_class.?);
    try testing.expect(site.io.journaled > 0);
    try testing.expect(site.io.sessions_told > 0);
    // Another process with the same token is refused, which its device has overcome long ago.
    const again = Link.helloOf(boot.identity.id, 6, .token, &boot.identity.token);
    try testing.expectEqual(.token_refused, (try link.sayHello(device, again)).body.refuse.code);
    try testing.expectEqual(null, boot.suspicion);
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
    try testing.expect(site.io.profile_finished.?.eql(boot.identity.id));
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
    try testing.expectEqual(null, site.io.profile_finished);
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
    try testing.expectEqual(1, link.port.store_errors);
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
            flushing.link.port.boots.caches.beginSyncs();
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

test "a flushed 4 KiB write of class edge takes six datagrams and no tick, thread or sync" {
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
    try testing.expectEqual(null, flushing.site.io.syncing);
    try testing.expectEqual(0, FlushFixture.syncs);
}
