//! Tests of holdings.zig: which edge answers a device whose version only some edges hold.

const std = @import("std");
const base = @import("base");
const core = @import("core");
const admission = @import("../admission.zig");
const fixture = @import("../agent_test.zig");
const holdings = @import("holdings.zig");
const http_response = @import("../response.zig");
const peer = @import("wire").peer;
const StoreErrors = @import("../store_errors.zig");
const TestIo = @import("../io_test.zig");
const HttpPaths = @import("../http_paths.zig").HttpPaths(TestIo);
const testing = std.testing;
const Site = fixture.Site;
const macOf = fixture.macOf;
const uuid = fixture.uuid;

const network: base.Ip4 = .init(10, 77, 0, 0);
const mac_text = "02-bf-00-00-00-01";
const peer_ip: base.Ip4 = .init(10, 77, 0, 10);

fn discover(site: *Site, xid: u32) admission.Verdict {
    return admission.judge(&site.boots, site.io.now_us, &.{
        .client = fixture.clientOf(1, .discover),
        .arrival = .{ .source = .{ .ip = .zero, .port = 68 }, .port = .dhcp },
        .network = 0,
        .packet = .{ .op = .request, .xid = xid, .chaddr = macOf(1) },
    }, network, 300);
}

/// The other edge tells about version 1.
fn tell(site: *Site, other: u8, copy: peer.Copy) void {
    var page: peer.Holdings =
        .{ .first = .zero, .last = .fromBytes(@splat(0xff)), .http_port = 6981 };
    page.list.appendAssumeCapacity(.{ .version = uuid(1), .copy = copy });
    site.peers.holdings.hear(other, 1, &page);
}

/// A thread has tried to open version 1, in vain.
fn lack(site: *Site) void {
    site.boots.onVersionOpened(site.io.now_us, uuid(1), site.io.problem);
}

fn scriptOf(site: *Site, query: []const u8, text: *[http_response.text_size_max]u8) ![]const u8 {
    var paths: HttpPaths = .{ .boots = &site.boots, .own = fixture.own };
    var target: [128]u8 = undefined;
    site.io.neighbour_mac = macOf(1);
    const response = paths.respond(peer_ip, &.{
        .method = .get,
        .target = try std.mem.print(&target, "/m/{s}/boot.ipxe{s}", .{ mac_text, query }),
        .range = null,
        .keep_alive = true,
        .body = "",
        .size = 1,
    }, text);
    try testing.expectEqual(200, response.status);
    return text[0..response.body.text];
}

test "an edge that lacks a version leaves its devices to one that holds it, as long as it lives" {
    const site: *Site = try .create();
    defer site.destroy();
    const other = site.addEdge();
    lack(site);
    tell(site, other, .held);
    try testing.expectEqual(.lacking, site.peers.holdings.ownOf(uuid(1)));
    try testing.expectEqual(.silence, discover(site, 1));
    // Nobody answers the device: its boot here tells why it fails.
    for (0..core.site.PeerTable.holder_retries_max) |_| {
        site.io.now_us += std.time.us_per_s / 2;
        try testing.expectEqual(.silence, discover(site, 1));
    }
    site.io.now_us += std.time.us_per_s / 2;
    try testing.expectEqual(.answer, discover(site, 1));
    const boot = site.boot(try site.begin(1));
    try testing.expectEqual(.version_missing, boot.suspicion.?.cause);
    try testing.expectEqualStrings(
        "the edge 10.77.0.3 has it, but did not answer the device",
        boot.suspicion.?.text.slice(),
    );
    site.io.now_us += core.site.PeerTable.alive_limit_us + 1;
    try testing.expectEqual(.answer, discover(site, 2));
}

test "an edge answers as before if no other holds the version, or it holds it itself" {
    const site: *Site = try .withVersion();
    defer site.destroy();
    const other = site.addEdge();
    tell(site, other, .lacking);
    holdings.update(&site.boots, site.io.now_us);
    try testing.expectEqual(.held, site.peers.holdings.ownOf(uuid(1)));
    try testing.expectEqual(.unknown, site.peers.holdings.ownOf(uuid(2)));
    // Whose the device is otherwise has no part in it.
    for (1..60) |number| {
        const mac: base.Mac = .{ .bytes = .{ 2, 0xbf, 1, 0, 0, @intCast(number) } };
        try testing.expectEqual(.answer, site.peers.decide(
            site.io.now_us,
            .{ .mac = mac, .network = network, .version = uuid(1) },
            .none,
        ));
    }
    _ = site.io.versions.pop();
    lack(site);
    // Both lack it.
    for (0..3) |_| {
        if (discover(site, 1) == .answer) break;
        site.io.now_us += std.time.us_per_s / 2;
    } else return error.NobodyAnswers;
}

test "a version that was found damaged, or could not be read, does not count as held" {
    const site: *Site = try .withVersion();
    defer site.destroy();
    const other = site.addEdge();
    tell(site, other, .held);
    site.boots.tick(site.io.now_us);
    try testing.expectEqual(.held, site.peers.holdings.ownOf(uuid(1)));
    site.io.damaged = uuid(1);
    site.io.store_revision = 1;
    site.boots.tick(site.io.now_us);
    try testing.expectEqual(.silence, discover(site, 1));
    site.io.damaged = null;
    site.io.store_revision = 2;
    site.boots.tick(site.io.now_us);
    try testing.expectEqual(.held, site.peers.holdings.ownOf(uuid(1)));
    var errors: StoreErrors = .{};
    _ = errors.note(0, .{
        .version_id = uuid(1),
        .offset = 0,
        .length = 4096,
        .since_unix_ms = 0,
        .last_us = 0,
    });
    site.boots.holdings.setUnreadable(&errors);
    site.boots.tick(site.io.now_us);
    try testing.expectEqual(.silence, discover(site, 1));
    site.boots.holdings.setUnreadable(&.{});
    site.boots.tick(site.io.now_us);
    try testing.expectEqual(.held, site.peers.holdings.ownOf(uuid(1)));
}

test "a version that comes into the store is opened without a device that asks" {
    const site: *Site = try .create();
    defer site.destroy();
    _ = site.addEdge();
    lack(site);
    site.boots.tick(site.io.now_us);
    site.io.now_us += std.time.us_per_s;
    site.io.opens_late = true;
    site.io.store_revision = 1;
    site.boots.tick(site.io.now_us);
    try testing.expectEqual(uuid(1), site.io.opening.?);
    _ = site.open(1);
    site.boots.onVersionOpened(site.io.now_us, uuid(1), null);
    try testing.expectEqual(.held, site.peers.holdings.ownOf(uuid(1)));
}

test "a loader that asks here for its script gets it where the version is" {
    const site: *Site = try .create();
    defer site.destroy();
    const other = site.addEdge();
    lack(site);
    var text: [http_response.text_size_max]u8 = undefined;
    tell(site, other, .held);
    const script = try scriptOf(site, "?from=media&platform=efi", &text);
    try testing.expectEqualStrings("#!ipxe\nchain http://10.77.0.3:6981/m/" ++ mac_text ++
        "/boot.ipxe?from=media&platform=efi&here=1 || chain http://10.77.0.2:6980/m/" ++ mac_text ++
        "/boot.ipxe?from=media&platform=efi&here=1\n", script);
    try testing.expectEqual(0, site.io.begun);
    // Nothing that an iPXE would carry out comes from a query.
    const cleaned = try scriptOf(site, "?a=${net0/mac}", &text);
    try testing.expect(std.mem.find(u8, cleaned, "$") == null);
    // It could not reach that edge.
    _ = try scriptOf(site, "?from=media&here=1", &text);
    try testing.expectEqual(1, site.io.begun);
}

test "a device may fail over only to edges that hold its version" {
    const site: *Site = try .withVersion();
    defer site.destroy();
    const other = site.addEdge();
    var asked = site.boots.askedOf(macOf(1), network);
    try testing.expect(asked.version.?.eql(uuid(1)));
    const now_us = site.io.now_us;
    const Case = struct { version: base.Uuid, told: ?peer.Copy, count: u8 };
    for ([_]Case{
        // It belongs to a release that tells nothing.
        .{ .version = uuid(1), .told = null, .count = 1 },
        .{ .version = uuid(1), .told = .lacking, .count = 0 },
        .{ .version = uuid(1), .told = .damaged, .count = 0 },
        .{ .version = uuid(2), .told = .held, .count = 0 },
        .{ .version = uuid(1), .told = .held, .count = 1 },
    }) |case| {
        if (case.told) |copy| tell(site, other, copy);
        asked.version = case.version;
        var edges: base.BoundedArray(base.Endpoint, 8) = .empty;
        site.peers.listStreams(now_us, asked, &edges);
        try testing.expectEqual(case.count, edges.count);
    }
}
