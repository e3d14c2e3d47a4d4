//! Measures look-ups in the edge's tables when they are full, in one process:
//!
//!     zig build table-bench -- [DEVICES]

const std = @import("std");
const base = @import("base");
const core = @import("core");

const Boot = core.boot.Boot;
const BootTable = core.boot.Table;
const Server = core.stream.Server;
const linux = std.os.linux;

/// Each look-up is of another device, so that caches hold as little as they do in an edge.
const rounds = 200_000;

pub fn main(init: std.process.Init) !u8 {
    const arguments = try init.minimal.args.toSlice(init.arena.allocator());
    const devices: u32 = if (arguments.len > 1)
        std.fmt.parseInt(u32, arguments[1], 10) catch return 2
    else
        16_384;
    var bench: Bench = .{ .gpa = std.heap.smp_allocator, .devices = devices };
    std.debug.print("{d} devices; a boot takes {d} bytes, a session {d}\n", .{
        devices, @sizeOf(Boot), @sizeOf(Server.Session),
    });
    try bench.measureBoots();
    try bench.measureSessions();
    try bench.measureClaims();
    try bench.measureLeases();
    return 0;
}

fn nowNs() u64 {
    var now: linux.timespec = undefined;
    _ = linux.clock_gettime(.MONOTONIC, &now);
    return @as(u64, @intCast(now.sec)) * std.time.ns_per_s + @as(u64, @intCast(now.nsec));
}

fn idOf(number: u32) base.Uuid {
    var bytes: [16]u8 = @splat(1);
    std.mem.writeInt(u32, bytes[0..4], number +% 1, .little);
    return .fromRandom(bytes);
}

fn macOf(number: u32) base.Mac {
    return .fromInt(0x02bf_0000_0000 + @as(u48, number));
}

fn ipOf(number: u32) base.Ip4 {
    return .fromInt(0x0a00_0100 + number);
}

const Bench = struct {
    gpa: std.mem.Allocator,
    devices: u32,
    prng: base.Prng = .init(7),
    /// Keeps what is looked up from being left out.
    found: u64 = 0,

    fn any(bench: *Bench) u32 {
        return @intCast(bench.prng.below(bench.devices));
    }

    fn tell(bench: *const Bench, name: []const u8, from_ns: u64, count: u64) void {
        const spent_ns = nowNs() - from_ns;
        std.debug.print("{s:<44}{d:>10} ns\n", .{ name, spent_ns / count });
        std.mem.doNotOptimizeAway(bench.found);
    }

    fn measureBoots(bench: *Bench) !void {
        var table: BootTable = try .init(bench.gpa, .{ .capacity = bench.devices + 1, .seed = 5 });
        defer table.deinit(bench.gpa);
        for (0..bench.devices) |number| {
            const ref = try table.insert(bootOf(@intCast(number)), 0);
            table.setAddress(table.get(ref).?, ipOf(@intCast(number)), true);
        }
        var from_ns = nowNs();
        for (0..rounds) |_| bench.found += table.findByMac(macOf(bench.any())).?.index;
        bench.tell("boot by MAC address", from_ns, rounds);
        from_ns = nowNs();
        for (0..rounds) |_| bench.found += table.findById(idOf(bench.any())).?.index;
        bench.tell("boot by id", from_ns, rounds);
        from_ns = nowNs();
        for (0..rounds) |_| bench.found += table.findByHandle(@as(u64, bench.any()) + 1).?.index;
        bench.tell("boot by handle", from_ns, rounds);
        from_ns = nowNs();
        for (0..rounds / 100) |_| bench.found += table.findActiveByIp(ipOf(bench.any())).?.index;
        bench.tell("boot in progress by address", from_ns, rounds / 100);
        from_ns = nowNs();
        for (0..rounds / 100) |round| {
            const ref = try table.insert(bootOf(bench.devices + @as(u32, @intCast(round))), 0);
            table.remove(ref);
        }
        bench.tell("a boot begins and is removed", from_ns, rounds / 100);
        from_ns = nowNs();
        for (0..20) |_| table.tick(1);
        bench.tell("a turn over all boots, once a second", from_ns, 20);
    }

    fn bootOf(number: u32) Boot {
        return .init(.{
            .id = idOf(number),
            .mac = macOf(number),
            .handle = @as(u64, number) + 1,
            .token = @splat(1),
        }, .{ .version_id = .zero }, 0, 1000);
    }

    fn measureSessions(bench: *Bench) !void {
        var server: Server = try .init(bench.gpa, .{
            .keys = .{ .cookie = @splat(1), .session = @splat(2), .resumption = @splat(3) },
            .sessions_max = @intCast(bench.devices),
            .ciphers = .{ .clear = true },
        });
        defer server.deinit(bench.gpa);
        for (server.sessions, 0..) |*session, number| {
            session.* = .{
                .id = number + 1,
                .boot_id = idOf(@intCast(number)),
                .from = .{ .ip = ipOf(@intCast(number)), .port = 7 },
            };
            server.enter(session);
        }
        const from_ns = nowNs();
        for (0..rounds / 100) |_|
            bench.found += server.sessionOf(idOf(bench.any())).?.id;
        bench.tell("session by boot", from_ns, rounds / 100);
    }

    fn measureClaims(bench: *Bench) !void {
        var table: core.site.PeerTable = try .init(bench.gpa, .{
            .epoch = 1,
            .boots_max = bench.devices,
            .others_max = bench.devices,
            .seed = 5,
        });
        defer table.deinit(bench.gpa);
        for (0..bench.devices) |number| {
            const mac, const id = .{ macOf(@intCast(number)), idOf(@intCast(number)) };
            table.own_claims.onBoot(mac, id, .{ .stage = .taken, .at_us = 1 });
            _ = table.other_claims.put(mac, .{ .boot = id, .edge = 3, .heard_us = 1 });
        }
        var from_ns = nowNs();
        for (0..rounds / 100) |_| {
            const mac = macOf(bench.any());
            bench.found += @intFromBool(table.own_claims.stageOf(mac) != null);
        }
        bench.tell("own claim by MAC address", from_ns, rounds / 100);
        from_ns = nowNs();
        for (0..rounds / 100) |round| {
            const number = bench.any();
            bench.found += @intFromBool(table.other_claims.put(macOf(number), .{
                .boot = idOf(number),
                .edge = 3,
                .heard_us = 2,
                .counter = round,
            }));
        }
        bench.tell("another edge's claim is received", from_ns, rounds / 100);
        from_ns = nowNs();
        var sent: u64 = 0;
        while (table.own_claims.takeDue(1)) |_| sent += 1;
        bench.tell("an own claim is taken to be sent", from_ns, sent);
    }

    fn measureLeases(bench: *Bench) !void {
        const count = @min(bench.devices, core.dhcp.network.pool_size_max);
        const network: core.dhcp.network.Network = .{
            .subnet = .of(.init(10, 0, 0, 1), 8),
            .mode = .server,
            .link = 0,
            .pools = &.{.{ .first = ipOf(0), .last = ipOf(count - 1) }},
        };
        var leases: core.dhcp.Leases = try .init(bench.gpa, &network, &.{});
        defer leases.deinit(bench.gpa);
        for (0..count) |number| {
            const client: core.dhcp.Leases.Client = .of(macOf(@intCast(number)), null, .client_id);
            _ = leases.bind(1, &client, ipOf(@intCast(number)), 3600);
        }
        while (leases.takeChange(1)) |_| {}
        var from_ns = nowNs();
        for (0..rounds / 100) |_| {
            const number: u32 = @intCast(bench.prng.below(count));
            const client: core.dhcp.Leases.Client = .of(macOf(number), null, .client_id);
            bench.found += leases.offer(2, &client, null).?.toInt();
            bench.found += @backingInt(leases.bind(2, &client, ipOf(number), 3600));
        }
        bench.tell("DISCOVER and REQUEST of a known client", from_ns, rounds / 100);
        from_ns = nowNs();
        for (0..rounds / 100) |round| {
            const stranger = macOf(1 << 20 | @as(u32, @intCast(round)));
            const client: core.dhcp.Leases.Client = .of(stranger, null, .client_id);
            bench.found += @intFromBool(leases.offer(2, &client, null) != null);
        }
        bench.tell("DISCOVER of a stranger, no address is free", from_ns, rounds / 100);
    }
};
