//! The settings of one subnet in the options of `serve`: `--subnet PREFIX,KEY=VALUE,…`. The file of
//! `--dhcp-config` has the same settings as JSON (`dhcp_config_file.zig`).

const std = @import("std");
const base = @import("base");
const core = @import("core");
const Complaint = @import("complaint.zig");
const dhcp_network = core.dhcp.network;

const Ip4 = base.Ip4;
const Network = dhcp_network.Network;

pub const Error = Complaint.Error || error{OutOfMemory};

pub const SubnetSettings = struct {
    network: Network,
    /// Null: the mode of `--dhcp`.
    mode: ?dhcp_network.Mode = null,
    /// The address of this edge that devices behind relay agents use.
    server: ?Ip4 = null,
};

/// The settings; the names are those of `--subnet`.
pub const Key = enum {
    dhcp,
    pool,
    router,
    dns,
    ntp,
    domain,
    mtu,
    lease,
    @"lease-min",
    @"lease-max",
    renew,
    rebind,
    relay,
    server,
    authoritative,
    identify,
    reserve,
};

const seconds_max = 365 * 86400;

/// Collects the settings of one subnet. Lists live in the arena.
pub const Builder = struct {
    arena: std.mem.Allocator,
    complaint: *Complaint,
    /// Where the settings come from, for error messages.
    place: []const u8,
    settings: SubnetSettings,
    pools: std.ArrayList(dhcp_network.Pool) = .empty,
    reservations: std.ArrayList(dhcp_network.Reservation) = .empty,
    routers: std.ArrayList(Ip4) = .empty,
    dns_servers: std.ArrayList(Ip4) = .empty,
    ntp_servers: std.ArrayList(Ip4) = .empty,
    relays: std.ArrayList(Ip4) = .empty,
    /// Keys that were given and may appear once.
    said: std.EnumSet(Key) = .empty,

    pub fn init(
        arena: std.mem.Allocator,
        complaint: *Complaint,
        place: []const u8,
        subnet: []const u8,
    ) Error!Builder {
        const prefix = base.Ip4Prefix.parse(subnet) catch |err| return switch (err) {
            error.InvalidPrefix => complaint.set(
                "{s}: '{s}' is not a subnet such as 10.1.0.0/16.",
                .{ place, subnet },
            ),
            error.HostBits => complaint.set(
                "{s}: '{s}' is an address; a subnet has no bits after its prefix, such as 10.1.0.0/16.",
                .{ place, subnet },
            ),
        };
        return .{
            .arena = arena,
            .complaint = complaint,
            .place = place,
            .settings = .{ .network = .{ .subnet = prefix, .mode = .off } },
        };
    }

    pub fn set(builder: *Builder, key: Key, text: []const u8) Error!void {
        const network = &builder.settings.network;
        switch (key) {
            .pool, .router, .dns, .ntp, .relay, .reserve => {},
            else => {
                if (builder.said.contains(key)) return builder.wrong(key, text, "is given twice");
                builder.said.insert(key);
            },
        }
        switch (key) {
            .dhcp => builder.settings.mode = std.meta.stringToEnum(dhcp_network.Mode, text) orelse
                return builder.wrong(key, text, "is not proxy, server or off"),
            .pool => try builder.add(key, text, &builder.pools, parsePool(text) orelse
                return builder.wrong(key, text, "is not FIRST-LAST, such as 10.1.2.10-10.1.2.250")),
            .router => try builder.addIp(key, text, &builder.routers),
            .dns => try builder.addIp(key, text, &builder.dns_servers),
            .ntp => try builder.addIp(key, text, &builder.ntp_servers),
            .relay => try builder.addIp(key, text, &builder.relays),
            .server => builder.settings.server = try builder.ip(key, text),
            .domain => {
                if (!isName(text, dhcp_network.domain_name_size_max))
                    return builder.wrong(key, text, "is not a domain name");
                network.domain_name = text;
            },
            // RFC 2132 section 5.1: at least 68.
            .mtu => network.mtu = @intCast(try builder.number(key, text, 68, 65535)),
            .lease => network.lease_time_s = try builder.seconds(key, text),
            .@"lease-min" => network.lease_time_min_s = try builder.seconds(key, text),
            .@"lease-max" => network.lease_time_max_s = try builder.seconds(key, text),
            .renew => network.renewal_time_s = try builder.seconds(key, text),
            .rebind => network.rebinding_time_s = try builder.seconds(key, text),
            .authoritative => network.authoritative = (std.meta.stringToEnum(YesNo, text) orelse
                return builder.wrong(key, text, "is not yes or no")) == .yes,
            .identify => network.identify_by = (std.meta.stringToEnum(Identify, text) orelse
                return builder.wrong(key, text, "is not client-id or mac")).of(),
            .reserve => try builder.reserve(text),
        }
    }

    const YesNo = enum { yes, no };
    const Identify = enum {
        @"client-id",
        mac,

        fn of(identify: Identify) dhcp_network.IdentifyBy {
            return switch (identify) {
                .@"client-id" => .client_id,
                .mac => .mac,
            };
        }
    };

    pub fn finish(builder: *Builder) SubnetSettings {
        const network = &builder.settings.network;
        network.pools = builder.pools.items;
        network.reservations = builder.reservations.items;
        network.routers = builder.routers.items;
        network.dns_servers = builder.dns_servers.items;
        network.ntp_servers = builder.ntp_servers.items;
        network.relays = builder.relays.items;
        // Limits that nobody set follow the lease.
        if (!builder.said.contains(.@"lease-max"))
            network.lease_time_max_s = @max(network.lease_time_max_s, network.lease_time_s);
        if (!builder.said.contains(.@"lease-min"))
            network.lease_time_min_s = @min(network.lease_time_min_s, network.lease_time_s);
        return builder.settings;
    }

    /// The parts of a reservation, as text.
    pub const ReservationText = struct {
        ip: []const u8,
        mac: ?[]const u8 = null,
        /// Hex.
        client_id: ?[]const u8 = null,
        host_name: ?[]const u8 = null,
    };

    pub fn addReservation(builder: *Builder, reserved: ReservationText) Error!void {
        var reservation: dhcp_network.Reservation =
            .{ .ip = try builder.ip(.reserve, reserved.ip) };
        if (reserved.mac) |text| {
            const mac = base.Mac.parse(text) catch base.Mac.zero;
            if (!mac.isDevice())
                return builder.wrong(.reserve, text, "is not a MAC address of a device");
            reservation.mac = mac;
        }
        if (reserved.client_id) |text| {
            const id = try builder.arena.alloc(u8, text.len / 2);
            const is_whole = text.len % 2 == 0 and id.len >= 2 and id.len <= 255;
            if (!is_whole) return builder.wrong(
                .reserve,
                text,
                "is not a client identifier of 2 to 255 bytes in hex",
            );
            _ = std.fmt.hexToBytes(id, text) catch
                return builder.wrong(
                    .reserve,
                    text,
                    "is not a client identifier of 2 to 255 bytes in hex",
                );
            reservation.client_id = id;
        }
        if (reserved.host_name) |text| {
            if (!isName(text, dhcp_network.host_name_size_max))
                return builder.wrong(.reserve, text, "is not a host name");
            reservation.host_name = text;
        }
        if (builder.reservations.items.len == dhcp_network.reservations_max)
            return builder.wrong(.reserve, reserved.ip, "is one more than 4096 reservations");
        try builder.reservations.append(builder.arena, reservation);
    }

    /// Parses `MAC/IP` or `id:HEX/IP`.
    fn reserve(builder: *Builder, text: []const u8) Error!void {
        const who, const address = std.mem.cutScalar(u8, text, '/') orelse
            return builder.wrong(.reserve, text, "is not MAC/IP or id:HEX/IP");
        const id = std.mem.cutPrefix(u8, who, "id:");
        try builder.addReservation(.{
            .ip = address,
            .mac = if (id == null) who else null,
            .client_id = id,
        });
    }

    fn add(builder: *Builder, key: Key, text: []const u8, list: anytype, item: anytype) Error!void {
        if (list.items.len == dhcp_network.addresses_max)
            return builder.wrong(key, text, "is one more than 8");
        try list.append(builder.arena, item);
    }

    fn addIp(builder: *Builder, key: Key, text: []const u8, list: *std.ArrayList(Ip4)) Error!void {
        try builder.add(key, text, list, try builder.ip(key, text));
    }

    fn ip(builder: *Builder, key: Key, text: []const u8) Error!Ip4 {
        const address = Ip4.parse(text) catch Ip4.zero;
        if (!address.isUnicast())
            return builder.wrong(key, text, "is not an IPv4 address of one machine");
        return address;
    }

    fn number(builder: *Builder, key: Key, text: []const u8, least: u32, most: u32) Error!u32 {
        const value = parseNumber(text) orelse most +| 1;
        if (value >= least and value <= most) return value;
        var buffer: [64]u8 = undefined;
        return builder.wrong(key, text, std.mem.print(
            &buffer,
            "is not a whole number from {d} to {d}",
            .{ least, most },
        ) catch unreachable);
    }

    /// Parses `3600`, `3600s`, `90m`, `12h` or `1d`.
    fn seconds(builder: *Builder, key: Key, text: []const u8) Error!u32 {
        const units =
            [_]struct { u8, u32 }{ .{ 's', 1 }, .{ 'm', 60 }, .{ 'h', 3600 }, .{ 'd', 86400 } };
        var digits = text;
        var unit: u32 = 1;
        for (units) |known| if (std.mem.endsWith(u8, text, &.{known[0]})) {
            digits = text[0 .. text.len - 1];
            unit = known[1];
        };
        const value = if (parseNumber(digits)) |count| count *| unit else 0;
        if (value == 0 or value > seconds_max)
            return builder.wrong(
                key,
                text,
                "is not a time of at most a year, such as 3600, 90m, 12h or 1d",
            );
        return value;
    }

    fn wrong(builder: *Builder, key: Key, text: []const u8, what: []const u8) error{Wrong} {
        return builder.complaint.set("{s}: {t} '{s}' {s}.", .{ builder.place, key, text, what });
    }
};

/// Parses one `--subnet`. The result lives in the arena or points into the text.
pub fn parse(
    arena: std.mem.Allocator,
    text: []const u8,
    complaint: *Complaint,
) Error!SubnetSettings {
    var parts = std.mem.splitScalar(u8, text, ',');
    const subnet = parts.first();
    const place = try std.fmt.allocPrint(arena, "--subnet {s}", .{subnet});
    var builder: Builder = try .init(arena, complaint, place, subnet);
    while (parts.next()) |part| {
        const name, const value = std.mem.cutScalar(u8, part, '=') orelse
            return complaint.set("{s}: '{s}' is not KEY=VALUE.", .{ place, part });
        const key = std.meta.stringToEnum(Key, name) orelse
            return complaint.set("{s}: there is no key '{s}'; see bootfarm-edge serve --help.", .{
                place, name,
            });
        try builder.set(key, value);
    }
    return builder.finish();
}

pub fn parsePool(text: []const u8) ?dhcp_network.Pool {
    const first, const last = std.mem.cutScalar(u8, text, '-') orelse return null;
    return .{
        .first = Ip4.parse(first) catch return null,
        .last = Ip4.parse(last) catch return null,
    };
}

fn parseNumber(text: []const u8) ?u32 {
    if (text.len == 0) return null;
    for (text) |digit| if (!std.ascii.isDigit(digit)) return null;
    return std.fmt.parseInt(u32, text, 10) catch null;
}

/// RFC 1123 section 2.1, as far as an option needs it.
fn isName(text: []const u8, size_max: usize) bool {
    if (text.len == 0 or text.len > size_max) return false;
    for (text) |char|
        if (!std.ascii.isAlphanumeric(char) and char != '-' and char != '.') return false;
    return true;
}

const testing = std.testing;

test "a subnet sets its mode, its addresses and the options for devices" {
    var arena: std.heap.ArenaAllocator = .init(testing.allocator);
    defer arena.deinit();
    var complaint: Complaint = .{};
    const settings = try parse(
        arena.allocator(),
        "10.1.0.0/16,dhcp=server,pool=10.1.2.10-10.1.9.250,pool=10.1.20.1-10.1.20.1,router=10.1.0.1," ++
            "dns=10.1.0.3,dns=10.1.0.4,domain=example.org,ntp=10.1.0.5,mtu=9000,lease=12h,renew=1h," ++
            "rebind=2h,relay=10.1.0.2,server=10.0.0.1,authoritative=no,identify=mac," ++
            "reserve=02:bf:00:00:00:01/10.1.0.9,reserve=id:00aabb/10.1.0.10",
        &complaint,
    );
    const network = &settings.network;
    try testing.expectEqual(.server, settings.mode.?);
    try testing.expectEqual(Ip4.init(10, 0, 0, 1), settings.server.?);
    try testing.expectEqual(2, network.pools.len);
    try testing.expectEqual(Ip4.init(10, 1, 9, 250), network.pools[0].last);
    try testing.expectEqual(2, network.dns_servers.len);
    try testing.expectEqual(43200, network.lease_time_s);
    try testing.expectEqual(3600, network.renewal_time_s.?);
    try testing.expectEqual(9000, network.mtu.?);
    try testing.expect(!network.authoritative);
    try testing.expectEqual(.mac, network.identify_by);
    try testing.expectEqualSlices(u8, &.{ 0, 0xaa, 0xbb }, network.reservations[1].client_id.?);
}

test "an error in a subnet is explained in one sentence" {
    const cases = [_]struct { []const u8, []const u8 }{
        .{ "10.1.0.0", "--subnet 10.1.0.0: '10.1.0.0' is not a subnet such as 10.1.0.0/16." },
        .{
            "10.1.0.7/16",
            "--subnet 10.1.0.7/16: '10.1.0.7/16' is an address; a subnet has no bits after its prefix, such as 10.1.0.0/16.",
        },
        .{ "10.1.0.0/16,pool", "--subnet 10.1.0.0/16: 'pool' is not KEY=VALUE." },
        .{
            "10.1.0.0/16,gateway=1",
            "--subnet 10.1.0.0/16: there is no key 'gateway'; see bootfarm-edge serve --help.",
        },
        .{
            "10.1.0.0/16,pool=10.1.0.9",
            "--subnet 10.1.0.0/16: pool '10.1.0.9' is not FIRST-LAST, such as 10.1.2.10-10.1.2.250.",
        },
        .{ "10.1.0.0/16,dhcp=on", "--subnet 10.1.0.0/16: dhcp 'on' is not proxy, server or off." },
        .{
            "10.1.0.0/16,mtu=60",
            "--subnet 10.1.0.0/16: mtu '60' is not a whole number from 68 to 65535.",
        },
        .{
            "10.1.0.0/16,lease=0",
            "--subnet 10.1.0.0/16: lease '0' is not a time of at most a year, such as 3600, 90m, 12h or 1d.",
        },
        .{ "10.1.0.0/16,mtu=1500,mtu=1500", "--subnet 10.1.0.0/16: mtu '1500' is given twice." },
        .{
            "10.1.0.0/16,reserve=02:bf/10.1.0.1",
            "--subnet 10.1.0.0/16: reserve '02:bf' is not a MAC address of a device.",
        },
        .{
            "10.1.0.0/16,router=224.0.0.1",
            "--subnet 10.1.0.0/16: router '224.0.0.1' is not an IPv4 address of one machine.",
        },
    };
    for (cases) |case| {
        var arena: std.heap.ArenaAllocator = .init(testing.allocator);
        defer arena.deinit();
        var complaint: Complaint = .{};
        try testing.expectError(error.Wrong, parse(arena.allocator(), case[0], &complaint));
        try testing.expectEqualStrings(case[1], complaint.text());
    }
}
