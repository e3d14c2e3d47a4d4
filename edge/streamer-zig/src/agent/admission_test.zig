//! Tests of admission.zig: which DHCP requests this edge answers.

const std = @import("std");
const base = @import("base");
const core = @import("core");
const admission = @import("admission.zig");
const fixture = @import("agent_test.zig");
const testing = std.testing;
const Site = fixture.Site;
const macOf = fixture.macOf;
const uuid = fixture.uuid;

const network: base.Ip4 = .init(10, 77, 0, 0);

fn requestOf(number: u8, message: anytype, xid: u32) core.dhcp.Service.BootRequest {
    return .{
        .client = fixture.clientOf(number, message),
        .arrival = .{ .source = .{ .ip = .zero, .port = 68 }, .port = .dhcp },
        .network = 0,
        .packet = .{ .op = .request, .xid = xid, .chaddr = macOf(number) },
    };
}

fn judge(site: *Site, request: *const core.dhcp.Service.BootRequest) admission.Verdict {
    return admission.judge(&site.boots, site.io.now_us, request, network, 300);
}

/// Another edge of the site is alive, and has taken this device.
fn claimElsewhere(site: *Site, mac: base.Mac) void {
    const other = site.addEdge();
    _ = site.peers.other_claims.put(mac, .{
        .boot = uuid(50),
        .edge = other,
        .stage = .taken,
        .is_over = false,
        .heard_us = site.io.now_us,
        .counter = 1,
    });
}

test "a registered device is answered, an ignored or unknown one is counted and gets silence" {
    const site: *Site = try .create();
    defer site.destroy();
    site.state.ignoredMacs = &.{macOf(8)};
    try site.decide();
    // A device that is disabled or has no version is answered by the boot's own refusal.
    for ([_]u8{ 1, 2, 3 }) |number|
        try testing.expectEqual(.answer, judge(site, &requestOf(number, .discover, 1)));
    try testing.expectEqual(.silence, judge(site, &requestOf(8, .discover, 1)));
    try testing.expectEqual(1, site.boots.ignored.get(.dhcp_ignored_device));
    try testing.expectEqual(0, site.boots.ignored.get(.dhcp_unknown_device));
    try testing.expectEqual(.silence, judge(site, &requestOf(9, .discover, 1)));
    try testing.expectEqual(1, site.boots.ignored.get(.dhcp_unknown_device));
    site.boots.tick(site.io.now_us + std.time.us_per_hour);
    // The unknown one is reported, the ignored one is not.
    try testing.expectEqual(1, site.io.discovered);
}

test "a boot in progress goes on although its device has been removed meanwhile" {
    const site: *Site = try .create();
    defer site.destroy();
    _ = site.open(1);
    const request = requestOf(1, .discover, 7);
    const ref = site.boots.forDhcp(site.io.now_us, &request.client, 7, 300).?;
    site.state.devices = site.devices[1..];
    try site.decide();
    try testing.expectEqual(.answer, judge(site, &request));
    // Its next boot does not begin.
    try testing.expectEqual(.answer, judge(site, &requestOf(1, .request, 8)));
    site.boots.supersede(site.io.now_us, ref);
    try testing.expectEqual(.silence, judge(site, &requestOf(1, .discover, 9)));
}

test "a loader of a device that another edge has taken is left to that edge" {
    const site: *Site = try .create();
    defer site.destroy();
    _ = site.open(1);
    claimElsewhere(site, macOf(1));
    var request = requestOf(1, .discover, 7);
    request.client.loader = .ipxe;
    try testing.expectEqual(.silence, judge(site, &request));
    // The same device addresses this edge by name.
    request.arrival.port = .pxe;
    try testing.expectEqual(.answer, judge(site, &request));
}

test "a boot that goes on here stays here, also if a request says that it began again elsewhere" {
    const site: *Site = try .create();
    defer site.destroy();
    _ = site.open(1);
    const first = requestOf(1, .discover, 7);
    const ref = site.boots.forDhcp(site.io.now_us, &first.client, 7, 300).?;
    claimElsewhere(site, macOf(1));
    // Only offered here: the other edge has it. It may still come back to this boot.
    try testing.expectEqual(.silence, judge(site, &first));
    try testing.expect(!site.boot(ref).isOver());
    site.boots.take(ref);
    try testing.expectEqual(.answer, judge(site, &first));
    // iPXE is the ROM and had its script: its next DISCOVER is a new boot, which is elsewhere.
    site.boots.apply(ref, site.io.now_us, .{ .loader_begin = .kernel });
    site.boots.apply(ref, site.io.now_us, .{ .stage1_read = .{ .size = 512 } });
    var again = requestOf(1, .discover, 8);
    again.client.loader = .ipxe;
    try testing.expectEqual(.silence, judge(site, &again));
    try testing.expect(!site.boot(ref).isOver());
}

test "a device addresses an edge by its PXE port or by name in a REQUEST" {
    var request = requestOf(1, .request, 7);
    try testing.expect(!admission.isAddressed(&request));
    request.packet.options.server_identifier = .init(10, 77, 0, 1);
    try testing.expect(admission.isAddressed(&request));
    request.client.message_type = .discover;
    try testing.expect(!admission.isAddressed(&request));
    request.arrival.port = .pxe;
    try testing.expect(admission.isAddressed(&request));
}

test "firmware that starts again at another edge's turn is answered by the first of the order" {
    const site: *Site = try .create();
    defer site.destroy();
    site.state.unknownDevices = .boot;
    try site.decide();
    var answered: u32 = 0;
    for (20..60) |number| {
        claimElsewhere(site, macOf(@intCast(number)));
        var request = requestOf(@intCast(number), .discover, 7);
        request.client.loader = .ipxe;
        try testing.expectEqual(.silence, judge(site, &request));
        request.client.loader = .pxe;
        answered += @intFromBool(judge(site, &request) == .answer);
    }
    try testing.expect(answered > 0 and answered < 40);
}
