//! A link with delay and loss between two network namespaces: a TUN interface in each (tun(4),
//! `delay0`), whose IP packets leave the other one later. Memory is bounded: packets are dropped
//! while a direction is full, as a router does. Loss is decided per packet here, since a filter in
//! front would drop whole super-packets.

const std = @import("std");
const base = @import("base");
const linux = std.os.linux;
const sys = @import("host").sys;
const processor = @import("processor.zig");
const assert = std.debug.assert;

pub const Options = struct {
    server_namespace: []const u8,
    client_namespace: []const u8,
    /// Delay of each direction.
    delay_us: u32 = 250,
    /// Loss of each direction, of 100,000 packets.
    loss: u32 = 0,
};

const interface_name = "delay0";

const packet_size_max = 9100;
/// Capacity of each direction; 6 MB of packets of 1500 bytes, 12 ms at 4 Gb/s.
const packets_max = 4096;
/// Packets taken from one interface before the other has its turn.
const turn_max = 64;

const Packet = struct { due_ns: u64, size: u16, bytes: [packet_size_max]u8 };

const Direction = struct {
    from_fd: i32,
    to_fd: i32,
    packets: []Packet,
    first: usize = 0,
    count: usize = 0,

    fn take(direction: *Direction, options: *const Options, prng: *base.Prng) void {
        for (0..turn_max) |_| {
            var excess: Packet = undefined;
            const is_full = direction.count == direction.packets.len;
            const place = if (is_full) &excess else &direction.packets[
                (direction.first +
                    direction.count) % direction.packets.len
            ];
            const size = sys.check(
                linux.read(direction.from_fd, &place.bytes, place.bytes.len),
            ) catch return;
            if (is_full or prng.chance(options.loss, 100_000)) continue;
            place.size = @intCast(size);
            place.due_ns =
                processor.nowNs() + @as(u64, options.delay_us) * std.time.ns_per_us;
            direction.count += 1;
        }
    }

    fn give(direction: *Direction, now_ns: u64) void {
        while (direction.count > 0) {
            const packet = &direction.packets[direction.first];
            if (packet.due_ns > now_ns) return;
            // A packet that an interface refuses is lost.
            _ = linux.write(direction.to_fd, &packet.bytes, packet.size);
            direction.first = (direction.first + 1) % direction.packets.len;
            direction.count -= 1;
        }
    }

    fn dueNs(direction: *const Direction) u64 {
        return if (direction.count > 0)
            direction.packets[direction.first].due_ns
        else
            std.math.maxInt(u64);
    }
};

/// Runs until the process is ended; `out` tells when the interfaces are there.
pub fn run(gpa: std.mem.Allocator, options: *const Options, out: *std.Io.Writer) !void {
    const server_fd = try openTun(options.server_namespace);
    const client_fd = try openTun(options.client_namespace);
    endWithParent();
    // It stands for a cable and should not wait for other programs: without the privilege it runs
    // as well as it can.
    const param: linux.sched_param = .{ .priority = 1 };
    _ = linux.sched_setscheduler(0, .{ .mode = .FIFO }, &param);
    // Wakes up when a packet is due, not up to 50 µs later.
    _ = linux.prctl(@backingInt(linux.PR.SET_TIMERSLACK), 1, 0, 0, 0);
    var directions: [2]Direction = .{
        .{
            .from_fd = server_fd,
            .to_fd = client_fd,
            .packets = try gpa.alloc(Packet, packets_max),
        },
        .{
            .from_fd = client_fd,
            .to_fd = server_fd,
            .packets = try gpa.alloc(Packet, packets_max),
        },
    };
    var prng: base.Prng = .init(1);
    try out.writeAll("relaying\n");
    try out.flush();
    while (true) {
        var polled = [_]linux.pollfd{
            .{ .fd = server_fd, .events = linux.POLL.IN, .revents = 0 },
            .{ .fd = client_fd, .events = linux.POLL.IN, .revents = 0 },
        };
        const due_ns = @min(directions[0].dueNs(), directions[1].dueNs());
        const wait_ns = @min(due_ns -| processor.nowNs(), std.time.ns_per_s);
        const timeout: linux.timespec = .{
            .sec = @intCast(wait_ns / std.time.ns_per_s),
            .nsec = @intCast(wait_ns % std.time.ns_per_s),
        };
        var left = timeout;
        _ = linux.ppoll(&polled, polled.len, &left, null);
        for (&directions) |*direction| direction.take(options, &prng);
        const now_ns = processor.nowNs();
        for (&directions) |*direction| direction.give(now_ns);
    }
}

/// Ends with a benchmark that was killed.
pub fn endWithParent() void {
    _ = linux.prctl(@backingInt(linux.PR.SET_PDEATHSIG), @backingInt(linux.SIG.KILL), 0, 0, 0);
}

fn openTun(namespace: []const u8) !i32 {
    var path: [128]u8 = undefined;
    const name = try std.mem.printSentinel(&path, "/var/run/netns/{s}", .{namespace}, 0);
    const namespace_fd: i32 = @intCast(try sys.check(linux.open(name, .{ .CLOEXEC = true }, 0)));
    defer sys.close(namespace_fd);
    _ = try sys.check(linux.setns(namespace_fd, linux.CLONE.NEWNET));
    const fd: i32 = @intCast(try sys.check(
        linux.open("/dev/net/tun", .{ .ACCMODE = .RDWR, .NONBLOCK = true, .CLOEXEC = true }, 0),
    ));
    errdefer sys.close(fd);
    // struct ifreq: a name, then flags.
    var request: [40]u8 align(8) = @splat(0);
    @memcpy(request[0..interface_name.len], interface_name);
    const tun_without_header: u16 = 0x0001 | 0x1000;
    std.mem.writeInt(
        u16,
        request[16..18],
        tun_without_header,
        @import("builtin").cpu.arch.endian(),
    );
    const set_interface = linux.IOCTL.IOW('T', 202, c_int);
    _ = try sys.check(linux.ioctl(fd, set_interface, @intFromPtr(&request)));
    return fd;
}
