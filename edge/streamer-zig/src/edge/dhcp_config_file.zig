//! Reads the file of `--dhcp-config`: `{"subnets": [{"subnet": "10.1.0.0/16", "dhcp": "server",
//! …}]}`, strict JSON. An error names its place: line and column, or the path of the field.

const std = @import("std");
const base = @import("base");
const core = @import("core");
const options_module = @import("options.zig");
const subnet_settings = @import("subnet_settings.zig");

const Builder = subnet_settings.Builder;
const Complaint = options_module.Complaint;
const Key = subnet_settings.Key;
const SubnetSettings = subnet_settings.SubnetSettings;
const Value = std.json.Value;

pub const Error = subnet_settings.Error;

/// In bytes; 4096 named reservations take a quarter of it.
const file_size_max = 4 << 20;

pub fn read(
    arena: std.mem.Allocator,
    io: std.Io,
    path: []const u8,
    complaint: *Complaint,
) Error![]const SubnetSettings {
    const text =
        std.Io.Dir.cwd().readFileAlloc(io, path, arena, .limited(file_size_max)) catch |err|
            return switch (err) {
                error.OutOfMemory => error.OutOfMemory,
                error.FileNotFound => complaint.set("--dhcp-config {s} does not exist.", .{path}),
                error.StreamTooLong => complaint.set(
                    "--dhcp-config {s} is larger than 4 MiB.",
                    .{path},
                ),
                else => complaint.set("--dhcp-config {s} cannot be read.", .{path}),
            };
    return parse(arena, path, text, complaint);
}

/// `path` is used in error messages.
pub fn parse(
    arena: std.mem.Allocator,
    path: []const u8,
    text: []const u8,
    complaint: *Complaint,
) Error![]const SubnetSettings {
    const root = try parseJson(arena, path, text, complaint);
    const place: Place = .{ .arena = arena, .complaint = complaint, .path = path };
    const object = try place.object(root);
    var settings: std.ArrayList(SubnetSettings) = .empty;
    var fields = object.iterator();
    while (fields.next()) |field| {
        if (!std.mem.eql(u8, field.key_ptr.*, "subnets"))
            return place.unknown(field.key_ptr.*, "subnets");
        const list_place = try place.below(".{s}", .{"subnets"});
        for (try list_place.array(field.value_ptr.*), 0..) |item, index| {
            if (index == core.dhcp.network.networks_max)
                return list_place.wrong("has more than {d} subnets", .{
                    core.dhcp.network.networks_max,
                });
            try settings.append(
                arena,
                try readSubnet(try list_place.below("[{d}]", .{index}), item),
            );
        }
    }
    return settings.items;
}

fn parseJson(
    arena: std.mem.Allocator,
    path: []const u8,
    text: []const u8,
    complaint: *Complaint,
) Error!Value {
    var scanner: std.json.Scanner = .initCompleteInput(arena, text);
    var diagnostics: std.json.Diagnostics = .{};
    scanner.enableDiagnostics(&diagnostics);
    return std.json.parseFromTokenSourceLeaky(Value, arena, &scanner, .{
        .duplicate_field_behavior = .@"error",
    }) catch |err| switch (err) {
        error.OutOfMemory => error.OutOfMemory,
        else => complaint.set("{s}, line {d}, column {d}: {s}.", .{
            path,
            diagnostics.getLine(),
            diagnostics.getColumn(),
            switch (err) {
                error.DuplicateField => "a field appears twice",
                error.UnexpectedEndOfInput => "the JSON ends before it is complete",
                else => "this is not JSON",
            },
        }),
    };
}

/// A field, for error messages.
const Place = struct {
    arena: std.mem.Allocator,
    complaint: *Complaint,
    path: []const u8,

    fn below(place: Place, comptime format: []const u8, arguments: anytype) Error!Place {
        var inner = place;
        const is_top = std.mem.findScalar(u8, place.path, ':') == null;
        const more = try std.fmt.allocPrint(place.arena, format, arguments);
        inner.path = if (is_top)
            try std.fmt.allocPrint(place.arena, "{s}: {s}", .{
                place.path,
                std.mem.trimStart(u8, more, "."),
            })
        else
            try std.fmt.allocPrint(place.arena, "{s}{s}", .{ place.path, more });
        return inner;
    }

    fn wrong(place: Place, comptime format: []const u8, arguments: anytype) error{Wrong} {
        const text = std.fmt.allocPrint(place.arena, format, arguments) catch "is wrong";
        return place.complaint.set("{s} {s}.", .{ place.path, text });
    }

    fn unknown(place: Place, name: []const u8, known: []const u8) error{Wrong} {
        return place.wrong("has no field '{s}' (but {s})", .{ name, known });
    }

    fn object(place: Place, value: Value) error{Wrong}!std.json.ObjectMap {
        return if (value == .object) value.object else place.wrong("is not an object", .{});
    }

    fn array(place: Place, value: Value) error{Wrong}![]const Value {
        return if (value == .array) value.array.items else place.wrong("is not a list", .{});
    }

    fn string(place: Place, value: Value) error{Wrong}![]const u8 {
        return if (value == .string) value.string else place.wrong("is not a string", .{});
    }
};

const Field = enum {
    subnet,
    dhcp,
    pools,
    routers,
    dnsServers,
    ntpServers,
    domainName,
    mtu,
    leaseTimeS,
    leaseTimeMinS,
    leaseTimeMaxS,
    renewalTimeS,
    rebindingTimeS,
    relays,
    serverIp,
    authoritative,
    identifyBy,
    reservations,

    const names =
        "subnet, dhcp, pools, routers, dnsServers, ntpServers, domainName, mtu, leaseTimeS, leaseTimeMinS, " ++
        "leaseTimeMaxS, renewalTimeS, rebindingTimeS, relays, serverIp, authoritative, identifyBy, reservations";
};

fn readSubnet(place: Place, value: Value) Error!SubnetSettings {
    const object = try place.object(value);
    const subnet = object.get("subnet") orelse
        return place.wrong("has no subnet, such as 10.1.0.0/16", .{});
    var builder: Builder = try .init(
        place.arena,
        place.complaint,
        place.path,
        try (try place.below(".subnet", .{})).string(subnet),
    );
    var fields = object.iterator();
    while (fields.next()) |entry| {
        const field = std.meta.stringToEnum(Field, entry.key_ptr.*) orelse
            return place.unknown(entry.key_ptr.*, Field.names);
        const inner = try place.below(".{t}", .{field});
        builder.place = inner.path;
        try readField(inner, &builder, field, entry.value_ptr.*);
    }
    return builder.finish();
}

fn readField(place: Place, builder: *Builder, field: Field, value: Value) Error!void {
    switch (field) {
        .subnet => {},
        .dhcp => try builder.set(.dhcp, try place.string(value)),
        .domainName => try builder.set(.domain, try place.string(value)),
        .serverIp => try builder.set(.server, try place.string(value)),
        .identifyBy => try builder.set(.identify, try place.string(value)),
        .mtu => try readNumber(place, builder, .mtu, value),
        .leaseTimeS => try readNumber(place, builder, .lease, value),
        .leaseTimeMinS => try readNumber(place, builder, .@"lease-min", value),
        .leaseTimeMaxS => try readNumber(place, builder, .@"lease-max", value),
        .renewalTimeS => try readNumber(place, builder, .renew, value),
        .rebindingTimeS => try readNumber(place, builder, .rebind, value),
        .pools => try readList(place, builder, .pool, value),
        .routers => try readList(place, builder, .router, value),
        .dnsServers => try readList(place, builder, .dns, value),
        .ntpServers => try readList(place, builder, .ntp, value),
        .relays => try readList(place, builder, .relay, value),
        .authoritative => {
            if (value != .bool) return place.wrong("is not true or false", .{});
            try builder.set(.authoritative, if (value.bool) "yes" else "no");
        },
        .reservations => for (try place.array(value), 0..) |item, index| {
            const inner = try place.below("[{d}]", .{index});
            builder.place = inner.path;
            try readReservation(inner, builder, item);
        },
    }
}

fn readNumber(place: Place, builder: *Builder, key: Key, value: Value) Error!void {
    if (value != .integer or value.integer < 0) return place.wrong("is not a whole number", .{});
    try builder.set(key, try std.fmt.allocPrint(place.arena, "{d}", .{value.integer}));
}

fn readList(place: Place, builder: *Builder, key: Key, value: Value) Error!void {
    for (try place.array(value), 0..) |item, index| {
        const inner = try place.below("[{d}]", .{index});
        builder.place = inner.path;
        try builder.set(key, try inner.string(item));
    }
}

fn readReservation(place: Place, builder: *Builder, value: Value) Error!void {
    const Name = enum { ip, mac, clientId, hostName };
    var reserved: Builder.ReservationText = .{ .ip = "" };
    var fields = (try place.object(value)).iterator();
    while (fields.next()) |entry| {
        const name = std.meta.stringToEnum(Name, entry.key_ptr.*) orelse
            return place.unknown(entry.key_ptr.*, "ip, mac, clientId, hostName");
        const text = try (try place.below(".{t}", .{name})).string(entry.value_ptr.*);
        switch (name) {
            .ip => reserved.ip = text,
            .mac => reserved.mac = text,
            .clientId => reserved.client_id = text,
            .hostName => reserved.host_name = text,
        }
    }
    if (reserved.ip.len == 0) return place.wrong("has no ip", .{});
    try builder.addReservation(reserved);
}

const testing = std.testing;

test "a file can set for each subnet everything that --subnet can" {
    var arena: std.heap.ArenaAllocator = .init(testing.allocator);
    defer arena.deinit();
    var complaint: Complaint = .{};
    const settings = try parse(arena.allocator(), "dhcp.json",
        \\{"subnets": [
        \\  {"subnet": "10.1.0.0/16", "dhcp": "server", "pools": ["10.1.2.10-10.1.2.20"], "routers": ["10.1.0.1"],
        \\   "leaseTimeS": 600, "authoritative": false, "identifyBy": "mac",
        \\   "reservations": [{"ip": "10.1.0.9", "mac": "02:bf:00:00:00:01", "hostName": "till-1"},
        \\                    {"ip": "10.1.0.10", "clientId": "00aabb"}]},
        \\  {"subnet": "10.2.0.0/16", "relays": ["10.2.0.1"], "serverIp": "10.0.0.1"}
        \\]}
    , &complaint);
    try testing.expectEqual(2, settings.len);
    try testing.expectEqual(600, settings[0].network.lease_time_s);
    try testing.expectEqualStrings("till-1", settings[0].network.reservations[0].host_name.?);
    try testing.expectEqual(null, settings[1].mode);
    try testing.expectEqual(1, settings[1].network.relays.len);
}

test "an error in a file is reported with its place" {
    const cases = [_]struct { []const u8, []const u8 }{
        .{ "{\n  \"subnets\": [}\n", "dhcp.json, line 2, column 15: this is not JSON." },
        .{
            "{\"subnets\": [",
            "dhcp.json, line 1, column 14: the JSON ends before it is complete.",
        },
        .{ "[]", "dhcp.json is not an object." },
        .{ "{\"pools\": []}", "dhcp.json has no field 'pools' (but subnets)." },
        .{ "{\"subnets\": [{}]}", "dhcp.json: subnets[0] has no subnet, such as 10.1.0.0/16." },
        .{
            "{\"subnets\": [{\"subnet\": \"10.1.0.0/16\", \"pools\": [\"10.1.0.1-10.1.0.2\", \"x\"]}]}",
            "dhcp.json: subnets[0].pools[1]: pool 'x' is not FIRST-LAST, such as 10.1.2.10-10.1.2.250.",
        },
        .{
            "{\"subnets\": [{\"subnet\": \"10.1.0.0/16\", \"mtu\": \"1500\"}]}",
            "dhcp.json: subnets[0].mtu is not a whole number.",
        },
        .{
            "{\"subnets\": [{\"subnet\": \"10.1.0.0/16\", \"reservations\": [{\"mac\": \"02:bf:00:00:00:01\"}]}]}",
            "dhcp.json: subnets[0].reservations[0] has no ip.",
        },
        .{
            "{\"subnets\": [{\"subnet\": \"10.1.0.0/16\", \"subnet\": \"10.1.0.0/16\"}]}",
            "dhcp.json, line 1, column 63: a field appears twice.",
        },
    };
    for (cases) |case| {
        var arena: std.heap.ArenaAllocator = .init(testing.allocator);
        defer arena.deinit();
        var complaint: Complaint = .{};
        try testing.expectError(
            error.Wrong,
            parse(arena.allocator(), "dhcp.json", case[0], &complaint),
        );
        try testing.expectEqualStrings(case[1], complaint.text());
    }
}
