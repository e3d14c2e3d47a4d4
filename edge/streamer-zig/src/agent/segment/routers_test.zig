//! Tests of routers.zig: devices that wait for an IPv6 router, and machines that solicit one for
//! other reasons.

const std = @import("std");
const base = @import("base");
const core = @import("core");
const agent_test = @import("../agent_test.zig");
const TestIo = @import("../io_test.zig");
const router_discovery = @import("wire").router_discovery;
const Routers = @import("routers.zig").Routers(TestIo);
const RouterWait = core.boot.RouterWait;
const Site = agent_test.Site;
const Ref = Site.Ref;
const macOf = agent_test.macOf;
const testing = std.testing;
const ms = std.time.us_per_ms;
const second = std.time.us_per_s;

const Segment = struct {
    site: *Site,
    routers: Routers,

    fn init(mode: core.site.RouterDiscovery.Mode) !Segment {
        const site: *Site = try .withVersion();
        var segment: Segment = .{ .site = site, .routers = .{ .boots = &site.boots } };
        try testing.expectEqual(0, segment.routers.add(mode));
        return segment;
    }

    fn deinit(segment: *Segment) void {
        segment.site.destroy();
    }

    /// Seconds pass in which the segment is asked for a router.
    fn settle(segment: *Segment) void {
        const io = &segment.site.io;
        for (0..14) |_| {
            io.now_us += second;
            segment.routers.tick(io.now_us);
        }
        io.router_messages.clear();
    }

    fn receive(segment: *Segment, from: router_discovery.Address, bytes: []const u8) void {
        segment.routers.receive(segment.site.io.now_us, 0, .{
            .from = from,
            .hop_limit = 255,
            .bytes = bytes,
        });
    }

    fn solicit(segment: *Segment, mac: base.Mac) void {
        const bytes = router_discovery.solicitation();
        segment.receive(router_discovery.linkLocalOf(mac), &bytes);
    }

    fn answers(segment: *const Segment) []const TestIo.RouterMessage {
        return segment.site.io.router_messages.constSlice();
    }

    fn beginDhcp(segment: *Segment, number: u8) !Ref {
        const io = &segment.site.io;
        const ref = try segment.site.begin(number);
        segment.site.boots.apply(ref, io.now_us, .{ .dhcp_request = .{
            .message = .discover,
            .client = .ipxe,
            .xid = number,
            .size = 300,
        } });
        segment.site.boots.apply(ref, io.now_us, .{ .dhcp_answer = .{ .size = 300 } });
        return ref;
    }

    /// iPXE solicits as it does in network cards until it is answered or gives up, and then
    /// requests its script.
    fn waitForRouter(segment: *Segment, ref: Ref) void {
        const io = &segment.site.io;
        const mac = segment.site.boot(ref).identity.mac;
        const began_us = io.now_us;
        const answered = segment.answers().len;
        for (RouterWait.ipxe_solicitations_ms) |at_ms| {
            if (segment.answers().len > answered) break;
            io.now_us = began_us + at_ms * ms;
            segment.solicit(mac);
        } else io.now_us = began_us + RouterWait.ipxe_gives_up_ms * ms;
        segment.site.boots.apply(ref, io.now_us, .{ .loader_begin = .script });
    }
};

test "a device that nobody answers has waited for a router, and its report says so" {
    var segment: Segment = try .init(.never);
    defer segment.deinit();
    segment.settle();
    const ref = try segment.beginDhcp(1);
    segment.waitForRouter(ref);
    try testing.expectEqual(0, segment.answers().len);
    const boot = segment.site.boot(ref);
    const pause = boot.router_wait.pause.?;
    try testing.expectEqual(RouterWait.ipxe_gives_up_ms * ms, pause.duration_us);
    try testing.expectEqual(RouterWait.ipxe_solicitations_ms.len, pause.solicitations);
    var buffer: [core.boot.report.size_max]u8 = undefined;
    const report = core.boot.report.encode(boot, .{ .revision = 1 }, &buffer);
    try testing.expect(std.mem.find(u8, report, "\"routerWait\":{\"atUs\":0," ++
        "\"durationUs\":15750000,\"solicitations\":6}") != null);
}

test "a device in its loader is told that there is no router, and waits no longer" {
    var segment: Segment = try .init(.booting);
    defer segment.deinit();
    segment.settle();
    const ref = try segment.beginDhcp(1);
    segment.waitForRouter(ref);
    try testing.expectEqual(1, segment.answers().len);
    const answer = &segment.answers()[0];
    try testing.expectEqual(router_discovery.linkLocalOf(macOf(1)), answer.to);
    try testing.expectEqualStrings(&router_discovery.advertisement(), answer.bytes());
    try testing.expectEqual(null, segment.site.boot(ref).router_wait.pause);
}

test "by default no machine is answered that is not in its loader here" {
    var segment: Segment = try .init(.booting);
    defer segment.deinit();
    segment.settle();
    // It does not boot here, or not yet.
    segment.solicit(macOf(99));
    segment.solicit(macOf(1));
    try testing.expectEqual(0, segment.answers().len);
    const ref = try segment.beginDhcp(1);
    // An operating system chooses its address; so does who asks in the name of another machine.
    const plain = router_discovery.solicitation();
    const with_mac = plain ++ [_]u8{ 1, 1 } ++ macOf(1).bytes;
    var private = router_discovery.linkLocalOf(macOf(1));
    private[11] = 0x12;
    segment.receive(private, &with_mac);
    // A host without an address could be answered by all nodes only.
    segment.receive(router_discovery.unspecified, &with_mac);
    try testing.expectEqual(0, segment.answers().len);
    segment.solicit(macOf(1));
    try testing.expectEqual(1, segment.answers().len);
    // As soon as the kernel is on its way, the kernel may be who asks.
    segment.site.io.now_us += second;
    segment.site.boots.apply(ref, segment.site.io.now_us, .{ .loader_begin = .kernel });
    segment.solicit(macOf(1));
    try testing.expectEqual(1, segment.answers().len);
}

test "an edge asks for a router before it denies that there is one" {
    var segment: Segment = try .init(.booting);
    defer segment.deinit();
    const io = &segment.site.io;
    _ = try segment.beginDhcp(1);
    segment.solicit(macOf(1));
    try testing.expectEqual(0, segment.answers().len);
    for (0..12) |_| {
        io.now_us += second;
        segment.routers.tick(io.now_us);
        segment.solicit(macOf(1));
    }
    try testing.expectEqual(3, segment.answers().len);
    for (segment.answers()) |*sent| {
        try testing.expectEqual(router_discovery.all_routers, sent.to);
        try testing.expectEqualStrings(&router_discovery.solicitation(), sent.bytes());
    }
}

test "where a router was heard the edge is silent, whatever it was asked for" {
    for ([_]core.site.RouterDiscovery.Mode{ .booting, .everybody }) |mode| {
        var segment: Segment = try .init(mode);
        defer segment.deinit();
        segment.settle();
        // A router that gives addresses, and no default route.
        const router = router_discovery.linkLocalOf(macOf(77));
        const prefix = [_]u8{ 3, 4 } ++ @as([30]u8, @splat(0));
        segment.receive(router, &(router_discovery.advertisement() ++ prefix));
        const ref = try segment.beginDhcp(1);
        segment.waitForRouter(ref);
        try testing.expectEqual(0, segment.answers().len);
        // What came through a router is not from this segment, and proves nothing.
        segment.site.io.now_us += 1800 * second;
        segment.routers.receive(segment.site.io.now_us, 0, .{
            .from = router,
            .hop_limit = 254,
            .bytes = &(router_discovery.advertisement() ++ prefix),
        });
        segment.settle();
        segment.site.boots.supersede(segment.site.io.now_us, ref);
        segment.waitForRouter(try segment.beginDhcp(1));
        try testing.expectEqual(1, segment.answers().len);
    }
}

test "who solicits in a device's name takes few answers from others" {
    var segment: Segment = try .init(.booting);
    defer segment.deinit();
    segment.settle();
    _ = try segment.beginDhcp(1);
    const other = try segment.beginDhcp(4);
    for (0..1000) |_| segment.solicit(macOf(1));
    try testing.expectEqual(1, segment.answers().len);
    segment.waitForRouter(other);
    try testing.expectEqual(2, segment.answers().len);
    try testing.expectEqual(null, segment.site.boot(other).router_wait.pause);
}

test "everybody is answered where an option says so, hosts without an address by all nodes" {
    var segment: Segment = try .init(.everybody);
    defer segment.deinit();
    const plain = router_discovery.solicitation();
    segment.solicit(macOf(99));
    segment.receive(router_discovery.unspecified, &plain);
    segment.receive(router_discovery.unspecified, &plain);
    try testing.expectEqual(2, segment.answers().len);
    try testing.expectEqual(router_discovery.linkLocalOf(macOf(99)), segment.answers()[0].to);
    try testing.expectEqual(router_discovery.all_nodes, segment.answers()[1].to);
}

test "a device behind a relay agent is recognized by the length of its pause" {
    var segment: Segment = try .init(.booting);
    defer segment.deinit();
    const io = &segment.site.io;
    const ref = try segment.beginDhcp(1);
    io.now_us += 16_100 * ms;
    segment.site.boots.apply(ref, io.now_us, .{ .loader_begin = .script });
    const pause = segment.site.boot(ref).router_wait.pause.?;
    try testing.expectEqual(16_100 * ms, pause.duration_us);
    try testing.expectEqual(0, pause.solicitations);
}
