//! `--trust-mac-from NET[,NET]`: the networks behind routers whose machines may name any MAC
//! address. An attached network needs no trust, and gets none: its neighbours are known.

const std = @import("std");
const agent = @import("agent");
const base = @import("base");
const host = @import("host");
const Complaint = @import("complaint.zig");

const Address = host.sockets.Address;
const Ip4Prefix = base.Ip4Prefix;
const loopback: Ip4Prefix = .{ .ip = .init(127, 0, 0, 0), .size = 8 };

pub const Error = Complaint.Error || error{OutOfMemory};

/// Appends the networks of one option.
pub fn parse(
    arena: std.mem.Allocator,
    trusted: *std.ArrayList(Ip4Prefix),
    text: []const u8,
    complaint: *Complaint,
) Error!void {
    var words = std.mem.splitScalar(u8, text, ',');
    while (words.next()) |word| {
        const network = Ip4Prefix.parse(word) catch return complaint.set(
            "--trust-mac-from needs networks such as 10.1.0.0/16, not '{s}'.",
            .{word},
        );
        if (trusted.items.len == agent.device_address.trusted_max) return complaint.set(
            "--trust-mac-from has more than {d} networks; name larger ones.",
            .{agent.device_address.trusted_max},
        );
        try trusted.append(arena, network);
    }
}

/// Refuses networks that this machine is attached to.
pub fn check(trusted: []const Ip4Prefix, complaint: *Complaint) Complaint.Error!void {
    var search: Search = .{ .trusted = trusted };
    host.sockets.eachAddress(&search, Search.take) catch
        return complaint.set("The addresses of this machine cannot be read.", .{});
    const found = search.found orelse return;
    return complaint.set(
        "--trust-mac-from {f} covers {f}, a network that this machine is attached to by {f}: there " ++
            "the neighbour table tells who asks. Name only networks behind routers, or loopback.",
        .{ found.network, Ip4Prefix.of(found.at.ip, @intCast(found.at.prefix_size)), found.at.ip },
    );
}

const Search = struct {
    trusted: []const Ip4Prefix,
    found: ?struct { network: Ip4Prefix, at: Address } = null,

    fn take(search: *Search, address: Address) bool {
        for (search.trusted) |network| if (isAttached(network, &address)) {
            search.found = .{ .network = network, .at = address };
            return false;
        };
        return true;
    }
};

fn isAttached(network: Ip4Prefix, address: *const Address) bool {
    if (address.prefix_size > 32) return false;
    const attached: Ip4Prefix = .of(address.ip, @intCast(address.prefix_size));
    if (network.size >= loopback.size and loopback.contains(network.ip)) return false;
    return attached.contains(network.ip) or network.contains(attached.ip);
}

const testing = std.testing;

test "networks are parsed from lists, and nonsense is refused" {
    var arena: std.heap.ArenaAllocator = .init(testing.allocator);
    defer arena.deinit();
    var complaint: Complaint = .{};
    var trusted: std.ArrayList(Ip4Prefix) = .empty;
    try parse(arena.allocator(), &trusted, "10.1.0.0/16,127.0.0.0/8", &complaint);
    try parse(arena.allocator(), &trusted, "10.9.0.0/24", &complaint);
    try testing.expectEqual(3, trusted.items.len);
    try testing.expect(trusted.items[2].contains(.init(10, 9, 0, 7)));
    for ([_][]const u8{ "", "10.1.0.0/16,", "10.1.0.5/16", "office" }) |text|
        try testing.expectError(
            error.Wrong,
            parse(arena.allocator(), &trusted, text, &complaint),
        );
    while (trusted.items.len < agent.device_address.trusted_max)
        try parse(arena.allocator(), &trusted, "10.9.0.0/24", &complaint);
    try testing.expectError(
        error.Wrong,
        parse(arena.allocator(), &trusted, "10.9.0.0/24", &complaint),
    );
}

test "an attached network is none to trust, by whatever prefix, and loopback alone is" {
    const office: Address = .{ .index = 2, .prefix_size = 24, .ip = .init(10, 78, 0, 1) };
    const own: Address = .{ .index = 1, .prefix_size = 8, .ip = .init(127, 0, 0, 1) };
    for ([_][]const u8{ "10.78.0.0/24", "10.78.0.128/25", "10.78.0.9/32", "10.0.0.0/8" }) |text|
        try testing.expect(isAttached(try .parse(text), &office));
    for ([_][]const u8{ "10.79.0.0/24", "127.0.0.0/8", "127.77.0.0/16" }) |text| {
        try testing.expect(!isAttached(try .parse(text), &office));
        try testing.expect(!isAttached(try .parse(text), &own));
    }
    for ([_]Address{ office, own }) |address|
        try testing.expect(isAttached(try .parse("0.0.0.0/0"), &address));
    try testing.expect(isAttached(try .parse("126.0.0.0/7"), &own));
    var complaint: Complaint = .{};
    try check(&.{loopback}, &complaint);
    try testing.expectError(error.Wrong, check(&.{try .parse("0.0.0.0/0")}, &complaint));
}
