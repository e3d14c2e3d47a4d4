//! Buffers for recvmmsg(2): one call receives what waits at a socket, up to `count` packets, each
//! with its sender and its control messages. Never waits.

const std = @import("std");
const sys = @import("../sys.zig");
const linux = std.os.linux;

/// `Name` is the socket's address type. Sizes are in bytes, of one packet and of its control
/// messages.
pub fn ReceiveBatch(comptime Name: type, comptime options: struct {
    count: usize,
    packet_size: usize,
    control_size: usize,
}) type {
    return struct {
        const Batch = @This();

        buffers: [options.count][options.packet_size]u8,
        names: [options.count]Name,
        controls: [options.count][options.control_size]u8 align(8),
        vectors: [options.count]std.posix.iovec,
        messages: [options.count]linux.mmsghdr,
        /// How many messages the last call has written to; at first all of them.
        used: usize,

        pub fn create(gpa: std.mem.Allocator) error{OutOfMemory}!*Batch {
            const batch = try gpa.create(Batch);
            batch.used = options.count;
            return batch;
        }

        /// Returns how many packets were received. An ICMP error for an earlier packet is an error
        /// of one call: the next call continues.
        pub fn receive(batch: *Batch, fd: i32) usize {
            const used = batch.used;
            for (
                batch.messages[0..used],
                batch.vectors[0..used],
                batch.buffers[0..used],
                batch.names[0..used],
                batch.controls[0..used],
            ) |*message, *vector, *buffer, *name, *own_control| {
                vector.* = .{ .base = buffer, .len = buffer.len };
                message.* = .{ .len = 0, .hdr = .{
                    .name = @ptrCast(name),
                    .namelen = @sizeOf(Name),
                    .iov = @ptrCast(vector),
                    .iovlen = 1,
                    .control = own_control,
                    .controllen = own_control.len,
                    .flags = 0,
                } };
            }
            const rc =
                linux.recvmmsg(fd, &batch.messages, options.count, linux.MSG.DONTWAIT, null);
            batch.used = sys.check(rc) catch 0;
            return batch.used;
        }

        /// Valid for indexes below the count of the last `receive`, until the next.
        pub fn bytes(batch: *const Batch, index: usize) []const u8 {
            return batch.buffers[index][0..@min(batch.messages[index].len, options.packet_size)];
        }

        pub fn control(batch: *const Batch, index: usize) []const u8 {
            const size: usize = @intCast(batch.messages[index].hdr.controllen);
            return batch.controls[index][0..@min(size, options.control_size)];
        }
    };
}
