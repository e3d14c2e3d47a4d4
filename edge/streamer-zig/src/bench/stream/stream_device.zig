//! A device of our edge for the load's loop: the protocol's own client (`core.stream.Client`)
//! behind its own socket, which receives several packets per call, also those that the kernel
//! joined (UDP_GRO, udp(7)).

const std = @import("std");
const base = @import("base");
const core = @import("core");
const linux = std.os.linux;
const wire = @import("wire").stream;
const sys = @import("host").sys;
const sockets = @import("host").sockets;
const SlotList = @import("slot_list.zig").SlotList;
const TargetOptions = core.target.options.TargetOptions;

/// Receive buffers shared by all devices of a loop.
pub const Receiver = struct {
    buffers: [batch][buffer_size]u8,
    controls: [batch][control_size]u8 align(8),
    vectors: [batch]std.posix.iovec,
    messages: [batch]linux.mmsghdr,
    /// Number of buffers that the last call has written to; initially all.
    used: usize,

    const batch = 32;
    /// As large as a super-packet, and not a power of two, which would map all of them to the same
    /// cache lines.
    const buffer_size = (64 << 10) + 1728;
    const control_size = 64;

    pub fn create(gpa: std.mem.Allocator) error{OutOfMemory}!*Receiver {
        const receiver = try gpa.create(Receiver);
        receiver.used = batch;
        return receiver;
    }

    /// Number of packets; `packets` returns each.
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
        // An ICMP error of an earlier packet is returned as an error here; the next call continues.
        receiver.used = sys.check(
            linux.recvmmsg(fd, &receiver.messages, batch, linux.MSG.DONTWAIT, null),
        ) catch 0;
        return receiver.used;
    }

    /// One or more consecutive packets of the same size, and that size.
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
                return @intCast(std.mem.readInt(
                    i32,
                    control[at + header_size ..][0..4],
                    @import("builtin").cpu.arch.endian(),
                ));
            at += std.mem.alignForward(usize, header.len, 8);
        }
        return null;
    }
};

pub const StreamDevice = struct {
    client: core.stream.Client,
    fd: i32 = -1,
    refused: bool = false,

    /// Answers to all reads in flight, with the kernel's bookkeeping of each packet.
    const socket_buffer_size = 8 << 20;

    pub fn init(
        gpa: std.mem.Allocator,
        reads_max: u16,
        packet_size_max: u16,
        codecs: u8,
    ) error{OutOfMemory}!StreamDevice {
        return .{
            .client = try .init(
                gpa,
                .{
                    .reads_max = reads_max,
                    .packet_size_max = packet_size_max,
                    .codecs = codecs,
                },
            ),
        };
    }

    pub fn deinit(device: *StreamDevice, gpa: std.mem.Allocator) void {
        if (device.fd >= 0) sys.close(device.fd);
        device.client.deinit(gpa);
    }

    /// Starts the boot that `words` describe; `flush` sends HELLO.
    pub fn open(device: *StreamDevice, words: TargetOptions) sys.Error!void {
        device.fd = @intCast(try sys.check(linux.socket(
            linux.AF.INET,
            linux.SOCK.DGRAM | linux.SOCK.NONBLOCK | linux.SOCK.CLOEXEC,
            0,
        )));
        const size: i32 = socket_buffer_size;
        _ = linux.setsockopt(
            device.fd,
            linux.SOL.SOCKET,
            linux.SO.RCVBUFFORCE,
            std.mem.asBytes(&size),
            @sizeOf(i32),
        );
        const on: i32 = 1;
        _ = linux.setsockopt(
            device.fd,
            linux.IPPROTO.UDP,
            linux.UDP.GRO,
            std.mem.asBytes(&on),
            @sizeOf(i32),
        );
        const address = sockets.toSockaddr(words.edge);
        _ = try sys.check(linux.connect(device.fd, &address, @sizeOf(linux.sockaddr.in)));
        var seed: [32]u8 = undefined;
        sys.random(&seed);
        if (words.clear) device.client.options.ciphers = core.stream.seal.withClear();
        device.client.start(
            sys.monotonicUs(),
            .{ .boot_id = words.boot_id, .token = words.token, .nonce_seed = seed },
        );
    }

    /// Passes received packets to the client. Fewer than a batch: nothing more is there.
    pub fn receive(device: *StreamDevice, receiver: *Receiver, now_us: u64) void {
        const count = receiver.take(device.fd);
        for (0..count) |index| {
            const bytes, const size = receiver.packets(index);
            var at: usize = 0;
            while (at < bytes.len) : (at += size) device.client.receive(
                now_us,
                bytes[at..@min(at + size, bytes.len)],
            );
        }
    }

    /// Sends the client's packets that are due. A packet that the kernel refuses counts as lost.
    pub fn flush(device: *StreamDevice, now_us: u64) void {
        var out: [wire.sealed_request_size_max]u8 = undefined;
        while (device.client.transmit(now_us, &out)) |packet|
            _ = linux.sendto(
                device.fd,
                packet.ptr,
                packet.len,
                linux.MSG.DONTWAIT | linux.MSG.NOSIGNAL,
                null,
                0,
            );
    }

    /// Handles the client's events; completed slots (the reads' tags) are added to `done`. Returns
    /// false when the session is over.
    pub fn takeDone(device: *StreamDevice, done: *SlotList) bool {
        while (device.client.nextEvent()) |event| switch (event) {
            .read_done => |read| done.add(@intCast(read.tag)),
            .refused, .version_changed, .cache_lost, .read_failed => return false,
            else => {},
        };
        return true;
    }
};
