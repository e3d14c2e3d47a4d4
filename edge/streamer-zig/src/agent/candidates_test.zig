//! Tests of candidates.zig: what hints do to the boots of a device, and what becomes of two
//! machines with one MAC address.

const std = @import("std");
const base = @import("base");
const core = @import("core");
const candidates = @import("candidates.zig");
const fixture = @import("agent_test.zig");
const testing = std.testing;
const wire = @import("wire").stream;
const Link = fixture.Link;
const Site = fixture.Site;
const clientOf = fixture.clientOf;
const device = fixture.device;
const macOf = fixture.macOf;
const uuid = fixture.uuid;

const second = std.time.us_per_s;

const open: core.boot.Event =
    .{ .stream_open = .{ .resumed = false, .mtu = 1500, .cipher = .aegis_128l } };
const discover: core.boot.Event =
    .{ .dhcp_request = .{ .message = .discover, .client = .rom, .xid = 1, .size = 300 } };

/// A device that runs: its boot is ready, and it was heard just now.
fn run(site: *Site, number: u8) !Site.Ref {
    const ref = try site.begin(number);
    for ([_]core.boot.Event{ discover, open, .{ .ready = .stream } }) |event|
        site.boots.apply(ref, site.io.now_us, event);
    return ref;
}

fn continuedBy(site: *Site, request: core.boot.DhcpRequest) core.boot.Table.Ref {
    return candidates.continued(&site.boots, site.io.now_us, macOf(1), request).?;
}

test "whatever asks for a boot of a device leads to one candidate, and ends nothing" {
    const site: *Site = try .withVersion();
    defer site.destroy();
    const runs = try run(site, 1);
    const before = site.boot(runs).*;
    var candidate: ?Site.Ref = null;
    for (0..50) |round| {
        site.io.now_us += second / 10;
        const now_us = site.io.now_us;
        const client = clientOf(1, .discover);
        const refs = [_]?Site.Ref{
            site.boots.forDhcp(now_us, &client, @intCast(100 + round), 300),
            try site.boots.forScript(now_us, macOf(1), .init(10, 0, 0, 66)),
            try site.begin(1),
        };
        site.boots.powerOn(now_us, macOf(1));
        site.boots.learnAddress(macOf(1), .init(10, 0, 0, 66));
        for (refs) |ref| {
            candidate = candidate orelse ref;
            try testing.expectEqual(candidate, ref);
        }
        site.boots.tick(now_us);
    }
    try testing.expect(!std.meta.eql(runs, candidate.?));
    try testing.expectEqual(2, site.boots.table.count);
    try testing.expectEqualDeep(before, site.boot(runs).*);
}

test "a machine that repeats its transaction after a reset may boot if it still may, and begins anew" {
    const site: *Site = try .withVersion();
    defer site.destroy();
    const client = clientOf(1, .discover);
    const first = site.boots.forDhcp(site.io.now_us, &client, 7, 300).?;
    site.boots.apply(first, site.io.now_us, .nbp_begin);
    for ([_]bool{ false, true }) |is_enabled| {
        site.devices[0].enabled = is_enabled;
        site.boots.policy = try .init(site.arena.allocator(), &site.state);
        const expected: ?Site.Ref = if (is_enabled) first else null;
        try testing.expectEqual(expected, site.boots.forDhcp(site.io.now_us, &client, 7, 300));
    }
    site.devices[0].versionId = uuid(2);
    site.boots.policy = try .init(site.arena.allocator(), &site.state);
    // As long as a copy of its first request may come, it is that boot's.
    site.io.now_us += 10 * second;
    try testing.expectEqual(first, site.boots.forDhcp(site.io.now_us, &client, 7, 300).?);
    site.io.now_us += 1;
    const later = site.boots.forDhcp(site.io.now_us, &client, 7, 300).?;
    try testing.expect(!std.meta.eql(first, later));
    try testing.expectEqual(uuid(2), site.boot(later).assignment.version_id);
    try testing.expectEqual(uuid(1), site.boot(first).assignment.version_id);
}

test "of a device that has not proved itself, two boots are in progress, and hints join the later" {
    const site: *Site = try .withVersion();
    defer site.destroy();
    const first = try site.begin(1);
    for ([_]core.boot.Event{ discover, .nbp_begin }) |event|
        site.boots.apply(first, site.io.now_us, event);
    const later = try site.begin(1);
    try testing.expect(!std.meta.eql(first, later));
    try testing.expectEqual(later, try site.begin(1));
    // The first one's handle still works, and its loader belongs to it: it loaded something last.
    try testing.expect(!site.boot(first).isOver());
    try testing.expect(site.boot(first).is_left);
    const loader: core.boot.DhcpRequest =
        .{ .message = .discover, .client = .ipxe, .xid = 8, .size = 300 };
    try testing.expectEqual(first, continuedBy(site, loader));
    site.boots.apply(later, site.io.now_us + 1, .nbp_begin);
    try testing.expectEqual(later, continuedBy(site, loader));
    // Whose transaction it is comes first.
    site.boots.apply(first, site.io.now_us, .{ .dhcp_request = loader });
    try testing.expectEqual(first, continuedBy(site, loader));
}

test "a device that proves itself in one boot ends its others, and those never reported were none" {
    for ([_]bool{ false, true }) |is_first| {
        const site: *Site = try .withVersion();
        defer site.destroy();
        const first = try site.begin(1);
        for ([_]core.boot.Event{ discover, .nbp_begin }) |event|
            site.boots.apply(first, site.io.now_us, event);
        const later = try site.begin(1);
        site.boots.apply(later, site.io.now_us, discover);
        try testing.expectEqual(0, site.boot(later).revision);
        const reported = site.io.reported;
        const proved = if (is_first) first else later;
        candidates.endOthers(&site.boots, site.io.now_us, proved);
        if (is_first) {
            try testing.expectEqual(null, site.boots.get(later));
            try testing.expectEqual(1, site.io.journaled_failovers);
            try testing.expectEqual(null, site.io.withdrawn_to);
            try testing.expectEqual(reported, site.io.reported);
        } else {
            try testing.expectEqual(.superseded, std.meta.activeTag(site.boot(first).outcome.?));
            try testing.expectEqual(reported + 1, site.io.reported);
        }
        site.boots.apply(proved, site.io.now_us, open);
        try testing.expectEqual(1, site.boots.table.count);
        try testing.expect(site.boot(proved).revision > 0);
        try testing.expect(!site.boot(proved).is_unreported);
    }
}

test "a candidate beside a device that is heard is not reported, whatever becomes of it" {
    const site: *Site = try .withVersion();
    defer site.destroy();
    const runs = try run(site, 1);
    const reported = site.io.reported;
    const journaled = site.io.journaled;
    const ref = try site.begin(1);
    site.boots.apply(ref, site.io.now_us, discover);
    try testing.expect(site.boot(ref).is_unreported);
    try testing.expect(site.io.journaled > journaled);
    for (0..70) |_| {
        site.io.now_us += second;
        site.boots.table.apply(runs, site.io.now_us, .{
            .stream_read = .{ .size = 512, .attempt = 0, .missing_fragments = 0 },
        });
        site.boots.tick(site.io.now_us);
    }
    try testing.expectEqual(null, site.boots.get(ref));
    try testing.expectEqual(reported, site.io.reported);
    try testing.expectEqual(1, site.io.journaled_failovers);
}

test "a candidate is reported with all that it measured once its device's session is silent" {
    const site: *Site = try .withVersion();
    defer site.destroy();
    const runs = try run(site, 1);
    const ref = try site.begin(1);
    site.boots.apply(ref, site.io.now_us, discover);
    const reported = site.io.reported;
    site.io.now_us += 12 * second - 1;
    site.boots.tick(site.io.now_us);
    try testing.expectEqual(reported, site.io.reported);
    site.io.now_us += 1;
    site.boots.tick(site.io.now_us);
    try testing.expectEqual(reported + 1, site.io.reported);
    try testing.expectEqual(1, site.boot(ref).revision);
    // From now on it is reported like any other, and the session that was silent stays.
    site.boots.apply(ref, site.io.now_us, .{ .failed = .{ .cause = .tftp_timeout } });
    try testing.expectEqual(reported + 2, site.io.reported);
    try testing.expect(site.boots.get(runs) != null);
}

test "a candidate that was only offered begins again with its device, which may be refused" {
    const site: *Site = try .withVersion();
    defer site.destroy();
    _ = site.open(2);
    _ = try run(site, 1);
    const client = clientOf(1, .discover);
    const ref = site.boots.forDhcp(site.io.now_us, &client, 8, 300).?;
    const boot = site.boot(ref);
    const handle = boot.identity.handle;
    site.io.now_us += 5 * second;
    site.devices[0].versionId = uuid(2);
    try site.decide();
    const begun_us = boot.started_us;
    // A copy of the same request.
    try testing.expectEqual(ref, site.boots.forDhcp(site.io.now_us, &client, 8, 300).?);
    try testing.expectEqual(begun_us, boot.started_us);
    try testing.expectEqual(ref, site.boots.forDhcp(site.io.now_us, &client, 9, 300).?);
    try testing.expect(boot.assignment.version_id.eql(uuid(2)));
    try testing.expectEqual(handle, boot.identity.handle);
    try testing.expectEqual(site.io.now_us, boot.started_us);
    // What is loading keeps its version and its time, for a quarter of an hour.
    site.boots.apply(ref, site.io.now_us, .nbp_begin);
    site.devices[0].versionId = uuid(1);
    try site.decide();
    const started_us = boot.started_us;
    site.io.now_us = started_us + 15 * 60 * second - 1;
    try testing.expectEqual(ref, site.boots.forDhcp(site.io.now_us, &client, 10, 300).?);
    try testing.expect(boot.assignment.version_id.eql(uuid(2)));
    try testing.expectEqual(started_us, boot.started_us);
    site.devices[0].enabled = false;
    try site.decide();
    try testing.expectEqual(null, site.boots.forDhcp(site.io.now_us, &client, 11, 300));
    try testing.expect(site.boots.get(ref) != null);
}

test "a candidate that failed beside a boot in progress is reported when that is over" {
    const site: *Site = try .withVersion();
    defer site.destroy();
    const first = try site.begin(1);
    for ([_]core.boot.Event{ discover, .nbp_begin }) |event|
        site.boots.apply(first, site.io.now_us, event);
    const later = try site.begin(1);
    site.boots.apply(later, site.io.now_us, .{ .failed = .{ .cause = .tftp_timeout } });
    const reported = site.io.reported;
    site.boots.tick(site.io.now_us + 59 * second);
    try testing.expectEqual(reported, site.io.reported);
    site.io.now_us += 60 * second;
    site.boots.tick(site.io.now_us);
    site.boots.tick(site.io.now_us);
    try testing.expect(site.boot(first).isOver());
    try testing.expectEqual(reported + 2, site.io.reported);
    // Or never, if another one begins first.
    const third = try site.begin(1);
    site.boots.apply(third, site.io.now_us, .nbp_begin);
    const fourth = try site.begin(1);
    site.boots.apply(fourth, site.io.now_us, .{ .failed = .{ .cause = .tftp_timeout } });
    try testing.expect(site.boot(fourth).is_unreported);
    _ = try site.begin(1);
    try testing.expectEqual(null, site.boots.get(fourth));
}

test "a device's address is that of its session, whatever others say" {
    const site: *Site = try .withVersion();
    defer site.destroy();
    const runs = try run(site, 1);
    site.boot(runs).facts.ip = .init(10, 0, 0, 7);
    site.boots.learnAddress(macOf(1), .init(10, 0, 0, 66));
    var client = clientOf(1, .discover);
    client.ip = .init(10, 0, 0, 66);
    // A copy of the request that began it.
    try testing.expect(site.boots.forDhcp(site.io.now_us, &client, 1, 300) != null);
    try testing.expect(site.boot(runs).facts.ip.?.eql(.init(10, 0, 0, 7)));
    try testing.expectEqual(null, site.boot(runs).facts.client_arch);
}

test "a machine that was reset and repeats its transaction ids gets a token that is not used" {
    const site: *Site = try .withVersion();
    defer site.destroy();
    const runs = try run(site, 1);
    for ([_]@FieldType(core.boot.Client, "loader"){ .pxe, .ipxe }) |loader| {
        var client = clientOf(1, .discover);
        client.loader = loader;
        // The first DISCOVER of `run` had this one, and so has the machine's next.
        const ref = site.boots.forDhcp(site.io.now_us, &client, 1, 300).?;
        try testing.expect(!std.meta.eql(runs, ref));
        try testing.expectEqual(null, site.boot(ref).token_nonce);
        try testing.expect(!site.boot(ref).stream_was_open);
        site.io.now_us += second / 10;
    }
    try testing.expectEqual(2, site.boots.table.count);
    try testing.expect(site.boot(runs).isRunning());
}

/// Another machine, and its stream.
const another: base.Endpoint = .{ .ip = .init(10, 77, 0, 11), .port = 40000 };

/// A device that runs in a session, and another boot of it that a hint began.
const Two = struct {
    site: *Site,
    link: Link,
    runs: *core.boot.Boot,
    welcome: wire.Packet,
    candidate: *core.boot.Boot,

    fn init() !Two {
        const site: *Site = try .withVersion();
        var two: Two = .{
            .site = site,
            .link = try .init(site),
            .runs = site.boot(try site.begin(1)),
            .welcome = undefined,
            .candidate = undefined,
        };
        two.welcome = try two.link.open(two.runs);
        two.link.ask(&two.welcome, 1, .{ .ready = .{
            .outcome = .ready,
            .uptime_us = 1,
            .code = @splat(0),
        } });
        _ = try two.link.answer();
        two.candidate = site.boot(try site.begin(1));
        return two;
    }

    fn deinit(two: *Two) void {
        two.link.deinit();
        two.site.destroy();
    }

    /// The other machine says HELLO with the token of the candidate; returns what goes out.
    fn hello(two: *Two) ![]const TestSent {
        const token = &two.candidate.identity.token;
        var said = Link.helloOf(two.candidate.identity.id, 7, .token, token);
        two.link.send(another, .{ .body = .{ .hello = said } });
        said.cookie = (try two.link.answer()).body.cookie.cookie;
        two.link.send(another, .{ .body = .{ .hello = said } });
        const sent = &two.site.io.sent;
        defer sent.count = 0;
        return sent.constSlice();
    }

    /// The other machine says its one HELLO, with its cookie, in this version; returns the version
    /// of the WELCOME that goes out to it, if there is one. Nothing else may.
    fn copy(two: *Two, version: wire.Version) !?wire.Version {
        const token = &two.candidate.identity.token;
        var said = Link.helloOf(two.candidate.identity.id, 7, .token, token);
        said.version = version;
        two.link.send(another, .{ .version = version, .body = .{ .hello = said } });
        said.cookie = (try two.link.answer()).body.cookie.cookie;
        said.proof = core.stream.seal.helloProof(token, &said);
        two.link.send(another, .{ .version = version, .body = .{ .hello = said } });
        const sent = &two.site.io.sent;
        defer sent.count = 0;
        var found: ?wire.Version = null;
        for (sent.constSlice()) |*packet| {
            if (packet.to.eql(device)) continue;
            try testing.expect(try two.bodyOf(packet) == .welcome);
            found = wire.Version.of(packet.bytes()).?;
        }
        return found;
    }

    fn bodyOf(two: *Two, sent: *const TestSent) !wire.Body {
        @memcpy(two.link.out[0..sent.size], sent.bytes());
        return (try wire.parse(two.link.out[0..sent.size])).body;
    }

    fn expectQuestion(two: *Two) !void {
        const sent = try two.hello();
        try testing.expectEqual(1, sent.len);
        try testing.expect(sent[0].to.eql(device));
        try testing.expect(try two.bodyOf(&sent[0]) == .no_session);
    }

    fn expectBusy(two: *Two) !void {
        const sent = try two.hello();
        try testing.expectEqual(1, sent.len);
        try testing.expect(sent[0].to.eql(another));
        try testing.expectEqual(.busy, (try two.bodyOf(&sent[0])).refuse.code);
    }

    fn expectWelcome(two: *Two) !void {
        const sent = try two.hello();
        try testing.expect(try two.bodyOf(&sent[0]) == .welcome);
        try testing.expect(sent[0].to.eql(another));
    }
};

const TestSent = @import("io_test.zig").Sent;

test "a machine that was reset takes its session's place when that has not answered for a second" {
    var two: Two = try .init();
    defer two.deinit();
    const old_id = two.runs.identity.id;
    try two.expectQuestion();
    // A copy of the HELLO asks nothing, and gets no answer.
    try testing.expectEqual(0, (try two.hello()).len);
    two.site.io.now_us += 400_000;
    try two.expectQuestion();
    two.site.io.now_us += 600_000 - 1;
    try two.expectQuestion();
    two.site.io.now_us += 1;
    try testing.expect(two.link.port.server.sessionOf(old_id) != null);
    try two.expectWelcome();
    try testing.expectEqual(null, two.link.port.server.sessionOf(old_id));
    try testing.expectEqual(null, two.site.boots.table.findById(old_id));
    try testing.expectEqual(1, two.site.boots.table.count);
    try testing.expectEqual(0, two.site.boots.ignored.get(.stream_mac_in_use));
    try testing.expect(two.candidate.facts.ip.?.eql(another.ip));
}

test "copies of one HELLO, in both versions and in any order, refuse each other nothing" {
    const copy_count = 6;
    // What is still asked, the session that opens, and a journal that takes its record late.
    for (0..1 << copy_count) |versions| for (0..4) |late_count| {
        var two: Two = try .init();
        defer two.deinit();
        for (0..copy_count) |number| {
            const version: wire.Version = if (versions >> @intCast(number) & 1 == 1) .v3 else .v2;
            two.site.io.is_journal_full = number < copy_count - 3 + late_count and number >= 3;
            _ = try two.copy(version);
            two.site.io.now_us += 300_000;
        }
        two.site.io.is_journal_full = false;
        // Its device continues in version 3, whatever came first.
        try testing.expectEqual(.v3, try two.copy(.v3));
        try testing.expectEqual(null, try two.copy(.v2));
        try testing.expectEqual(.v3, try two.copy(.v3));
        try testing.expectEqual(.v3, two.link.port.server.sessionOf(two.candidate.identity.id).?
            .version);
        try testing.expectEqual(null, two.candidate.suspicion);
    };
}

test "a device that answers stays, and the other machine is told that it is busy" {
    var two: Two = try .init();
    defer two.deinit();
    try two.expectQuestion();
    two.site.io.now_us += 1000;
    const returned = try two.link.returnOf(two.runs, 9);
    try testing.expect(returned.body == .welcome);
    two.site.io.now_us += 1000;
    const reported = two.site.io.reported;
    try two.expectBusy();
    try testing.expectEqual(1, two.site.boots.ignored.get(.stream_mac_in_use));
    try testing.expectEqual(.mac_in_use, two.candidate.suspicion.?.cause);
    // This one is reported: it has proved itself.
    try testing.expectEqual(reported + 1, two.site.io.reported);
    try testing.expectEqual(.ready, std.meta.activeTag(two.runs.outcome.?));
    // For half a minute it is not asked again, however often the other one says HELLO.
    for (0..20) |_| {
        two.site.io.now_us += std.time.us_per_s;
        two.link.read(&returned, 1);
        two.site.io.sent.count = 0;
        try two.expectBusy();
    }
    try testing.expectEqual(1, two.site.boots.ignored.get(.stream_mac_in_use));
    two.site.io.now_us += 11 * std.time.us_per_s;
    two.link.read(&returned, 2);
    two.site.io.sent.count = 0;
    try two.expectQuestion();
    // Any packet of its session is an answer.
    two.site.io.now_us += 1;
    two.link.read(&returned, 3);
    two.site.io.sent.count = 0;
    try two.expectBusy();
    try testing.expectEqual(2, two.site.boots.ignored.get(.stream_mac_in_use));
    // It is switched off at once after that: its silence is enough.
    two.site.io.now_us += 12 * std.time.us_per_s - 1;
    try two.expectBusy();
    two.site.io.now_us += 1;
    try two.expectWelcome();
}

test "a running device without a session here has twelve seconds to bring it back" {
    var two: Two = try .init();
    defer two.deinit();
    two.link.port.server.forget(two.runs.identity.id);
    two.site.io.now_us += 12 * std.time.us_per_s - 1;
    try two.expectBusy();
    two.site.io.now_us += 1;
    try two.expectWelcome();
}

test "restarts of the edge do not prolong the wait for a device that is gone" {
    var two: Two = try .init();
    defer two.deinit();
    two.link.port.server.forget(two.runs.identity.id);
    for (0..11) |_| {
        two.runs.onRestart(two.site.io.now_us);
        two.site.io.now_us += std.time.us_per_s;
        try two.expectBusy();
        try testing.expect(two.runs.touched);
    }
    // The machine with the edge may be off in between.
    two.site.io.now_us += 60 * std.time.us_per_s;
    two.runs.onRestart(two.site.io.now_us);
    two.site.io.now_us += std.time.us_per_s - 1;
    try two.expectBusy();
    two.site.io.now_us += 1;
    try two.expectWelcome();
}

test "a device that comes back after restarts has its twelve seconds again" {
    var two: Two = try .init();
    defer two.deinit();
    two.link.port.server.forget(two.runs.identity.id);
    two.runs.onRestart(two.site.io.now_us);
    two.site.io.now_us += 11 * std.time.us_per_s;
    try two.expectBusy();
    const returned = try two.link.returnOf(two.runs, 9);
    two.runs.touched = false;
    two.link.read(&returned, 1);
    try testing.expect(two.runs.touched);
    two.link.port.server.forget(two.runs.identity.id);
    two.runs.onRestart(two.site.io.now_us);
    two.site.io.sent.count = 0;
    two.site.io.now_us += 12 * std.time.us_per_s - 1;
    try two.expectBusy();
    two.site.io.now_us += 1;
    try two.expectWelcome();
}

test "a HELLO that proves nothing asks nobody, and a boot that is ended takes nothing" {
    var two: Two = try .init();
    defer two.deinit();
    const wrong = Link.helloOf(two.candidate.identity.id, 7, .token, "0123456789abcdef");
    const refused = try two.link.sayHello(another, wrong);
    try testing.expectEqual(.token_refused, refused.body.refuse.code);
    try testing.expectEqual(null, two.link.port.server.sessionOf(two.runs.identity.id).?
        .question.asked_us);
    // An old HELLO of the running boot: its token is used.
    const old = Link.helloOf(two.runs.identity.id, 8, .token, &two.runs.identity.token);
    const again = try two.link.sayHello(another, old);
    try testing.expectEqual(.token_refused, again.body.refuse.code);
    try testing.expect(two.link.port.server.sessionOf(two.runs.identity.id).?.from.eql(device));
}
