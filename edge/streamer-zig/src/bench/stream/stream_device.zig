//! A device of our edge for the load's loop: the protocol's own client (`core.stream.Client`) behind a socket of its own, which takes
//! several packets a call and those that the kernel kept together as one (UDP_GRO, udp(7)).

const std = @import("std");
const base = @import("base");
const core = @import("core");
const linux = std.os.linux;
const wire = @import("wire").stream;
const sys = @import("host").sys;
const sockets = @import("host").sockets;
const SlotList = @import("slot_list.zig").SlotList;
const TargetOptions = core.target.options.TargetOptions;

/// What packets are received into, shared by all devices of a loop.
pub const Receiver = struct {
    buffers: [batch][buffer_size]u8,
    controls: [batch][control_size]u8 align(8),
    vectors: [batch]std.posix.iovec,
    messages: [batch]linux.mmsghdr,
    /// How many of them the last call has written to; at first all.
    used: usize,

    const batch = 32;
    /// As large as a super-packet, and not a power of two: the same lines of the processor's cache would be used for all.
    const buffer_size = (64 << 10) + 1728;
    const control_size = 64;

    pub fn create(gpa: std.mem.Allocator) error{OutOfMemory}!*Receiver {
        const receiver = try gpa.create(Receiver);
        receiver.used = batch;
        return receiver;
    }

    /// How many there were; `packets` gives each.
    fn take(receiver: *Receiver, fd: i32) usize {
        const used = receiver.used;
        for (
            receiver.messages[0..used],
            receiver.vectors[0..used],
            receiver.buffers[0..used],
            receiver.controls[0..used],
        ) |*message, *vector, *buffer, *control| {
            vector.* = .{ .base = buffer, .len = buffer.len };
            message.* = .{ .len = 0, .hdr = .{
                .name = null,
                .namelen = 0,
                .iov = @ptrCast(vector),
                .iovlen = 1,
                .control = control,
                .controllen = control.len,
                .flags = 0,
            } };
        }
        // An ICMP error of an earlier packet comes back as an error here; the next call goes on.
        receiver.used = sys.check(linux.recvmmsg(fd, &receiver.messages, batch, linux.MSG.DONTWAIT, null)) catch 0;
        return receiver.used;
    }

    /// One or more packets of the same size behind each other, and their size.
    fn packets(receiver: *Receiver, index: usize) struct { []u8, usize } {
        const message = &receiver.messages[index];
        const bytes = receiver.buffers[index][0..message.len];
        const control = receiver.controls[index][0..@intCast(message.hdr.controllen)];
        return .{ bytes, segmentSizeIn(control) orelse @max(1, bytes.len) };
    }

    fn segmentSizeIn(control: []const u8) ?usize {
        const header_size = @sizeOf(linux.cmsghdr);
        var at: usize = 0;
        while (at + header_size + 4 <= control.len) {
            const header = std.mem.bytesToValue(linux.cmsghdr, control[at..][0..header_size]);
            if (header.len < header_size) return null;
            if (header.level == linux.IPPROTO.UDP and header.type == linux.UDP.GRO)
                return @intCast(std.mem.readInt(i32, control[at + header_size ..][0..4], @import("builtin").cpu.arch.endian()));
            at += std.mem.alignForward(usize, header.len, 8);
        }
        return null;
    }
};

pub const StreamDevice = struct {
    client: core.stream.Client,
    fd: i32 = -1,
    refused: bool = false,

    /// Answers to all reads that are under way, with the kernel's own bookkeeping of each packet.
    const socket_buffer_size = 8 << 20;

    pub fn init(gpa: std.mem.Allocator, reads_max: u16, packet_size_max: u16) error{OutOfMemory}!StreamDevice {
        return .{ .client = try .init(gpa, .{ .reads_max = reads_max, .packet_size_max = packet_size_max }) };
    }

    pub fn deinit(device: *StreamDevice, gpa: std.mem.Allocator) void {
        if (device.fd >= 0) sys.close(device.fd);
        device.client.deinit(gpa);
    }

    /// Begins the boot that `words` are of; `flush` says hello.
    pub fn open(device: *StreamDevice, words: TargetOptions) sys.Error!void {
        device.fd = @intCast(try sys.check(linux.socket(
            linux.AF.INET,
            linux.SOCK.DGRAM | linux.SOCK.NONBLOCK | linux.SOCK.CLOEXEC,
            0,
        )));
        const size: i32 = socket_buffer_size;
        _ = linux.setsockopt(device.fd, linux.SOL.SOCKET, linux.SO.RCVBUFFORCE, std.mem.asBytes(&size), @sizeOf(i32));
        const on: i32 = 1;
        _ = linux.setsockopt(device.fd, linux.IPPROTO.UDP, linux.UDP.GRO, std.mem.asBytes(&on), @sizeOf(i32));
        const address = sockets.toSockaddr(words.edge);
        _ = try sys.check(linux.connect(device.fd, &address, @sizeOf(linux.sockaddr.in)));
        var seed: [32]u8 = undefined;
        sys.random(&seed);
        if (words.clear) device.client.options.ciphers = core.stream.seal.withClear();
        device.client.start(sys.monotonicUs(), .{ .boot_id = words.boot_id, .token = words.token, .nonce_seed = seed });
    }

    /// Hands the client what has come. Fewer than a batch: nothing more is there.
    pub fn receive(device: *StreamDevice, receiver: *Receiver, now_us: u64) void {
        const count = receiver.take(device.fd);
        for (0..count) |index| {
            const bytes, const size = receiver.packets(index);
            var at: usize = 0;
            while (at < bytes.len) : (at += size) device.client.receive(now_us, bytes[at..@min(at + size, bytes.len)]);
        }
    }

    /// Sends what the client wants sent now. A packet that the kernel does not take is a lost one.
    pub fn flush(device: *StreamDevice, now_us: u64) void {
        var out: [wire.sealed_request_size_max]u8 = undefined;
        while (device.client.transmit(now_us, &out)) |packet|
            _ = linux.sendto(device.fd, packet.ptr, packet.len, linux.MSG.DONTWAIT | linux.MSG.NOSIGNAL, null, 0);
    }

    /// Takes the client's events; slots (the reads' tags) that have ended are added to `done`. False: the session is over.
    pub fn takeDone(device: *StreamDevice, done: *SlotList) bool {
        while (device.client.nextEvent()) |event| switch (event) {
            .read_done => |read| done.add(@intCast(read.tag)),
            .refused, .version_changed, .cache_lost, .read_failed => return false,
            else => {},
        };
        return true;
    }
};
