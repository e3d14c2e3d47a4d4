//! Decides which frames the kernel gives to the listener on a segment, as a classic BPF program
//! (socket(7), SO_ATTACH_FILTER): a download at line rate must cost the edge next to nothing. It
//! passes DHCP, complete; TFTP except most of its DATA and ACK; on the boot HTTP port the segments
//! that open, close or push, except the pieces of large answers; and ICMP "unreachable". It never
//! passes the stream.

const std = @import("std");
const assert = std.debug.assert;

/// struct sock_filter (linux/filter.h).
pub const Instruction = extern struct { code: u16, jump_true: u8, jump_false: u8, k: u32 };

pub const Ports = struct { dhcp: u16 = 67, pxe: u16 = 4011, tftp: u16 = 69, http: u16 };

/// A whole frame of DHCP.
pub const snap_size_whole = 1522;
/// Headers and the start of a request or an answer.
pub const snap_size_head = 640;
/// Headers and the first bytes of a DATA block.
const snap_size_block = 80;
/// Passes every DATA and ACK of a transfer up to this block, then one in so many; also every short
/// DATA, because the last one of a transfer is short.
const blocks_whole = 16;
const blocks_step_mask = 63;

/// IP packets of HTTP answers; one that went out unsegmented is longer.
const ip_size_short_max = 1500;

const instructions_max = 96;

pub const Program = struct {
    buffer: [instructions_max]Instruction,
    count: u16,

    pub fn slice(program: *const Program) []const Instruction {
        return program.buffer[0..program.count];
    }

    /// For Ethernet frames with IPv4; the kernel has removed VLAN tags.
    pub fn init(ports: Ports) Program {
        var writer: Writer = .{};
        writer.load(.half, 12);
        writer.unless(jeq, 0x0800, .reject);
        writer.load(.half, 20);
        writer.when(jset, 0x1fff, .reject);
        writer.add(.{ .code = ldx_ip_header, .jump_true = 0, .jump_false = 0, .k = 14 });
        writer.load(.byte, 23);
        writer.when(jeq, 17, .udp);
        writer.when(jeq, 6, .tcp);
        writer.unless(jeq, 1, .reject);
        // ICMP: only destination unreachable, which includes "fragmentation needed".
        writer.loadBehindIp(.byte, 14);
        writer.unless(jeq, 3, .reject);
        writer.accept(.head);

        writer.label(.udp);
        for ([_]u32{ 14, 16 }) |offset| {
            writer.loadBehindIp(.half, offset);
            for ([_]u16{ 67, 68, 4011, ports.dhcp, ports.pxe }) |port|
                writer.when(jeq, port, .whole);
            writer.when(jeq, ports.tftp, .tftp);
        }
        writer.jump(.reject);

        writer.label(.tftp);
        writer.loadBehindIp(.half, 22);
        writer.when(jeq, 3, .data);
        writer.unless(jeq, 4, .head);
        writer.jump(.numbered);
        writer.label(.data);
        // 8 for UDP, 4 for TFTP, less than the smallest block that anyone negotiates.
        writer.loadBehindIp(.half, 18);
        writer.unless(jge, 8 + 4 + 512, .block);
        writer.label(.numbered);
        writer.loadBehindIp(.half, 24);
        writer.unless(jge, blocks_whole, .block);
        writer.unless(jset, blocks_step_mask, .block);
        writer.jump(.reject);

        writer.label(.tcp);
        writer.loadBehindIp(.half, 14);
        writer.when(jeq, ports.http, .answer);
        writer.loadBehindIp(.half, 16);
        writer.when(jeq, ports.http, .http);
        writer.jump(.reject);
        writer.label(.answer);
        writer.loadBehindIp(.byte, 14 + 13);
        // FIN, SYN, RST.
        writer.when(jset, 0x07, .head);
        // Pieces of a large file are many and tell nothing; short answers are complete.
        writer.load(.half, 16);
        writer.when(jge, ip_size_short_max + 1, .reject);
        writer.label(.http);
        writer.loadBehindIp(.byte, 14 + 13);
        // FIN, SYN, RST, PSH.
        writer.when(jset, 0x0f, .head);

        writer.label(.reject);
        writer.add(.{ .code = ret, .jump_true = 0, .jump_false = 0, .k = 0 });
        writer.label(.whole);
        writer.add(.{ .code = ret, .jump_true = 0, .jump_false = 0, .k = snap_size_whole });
        writer.label(.head);
        writer.add(.{ .code = ret, .jump_true = 0, .jump_false = 0, .k = snap_size_head });
        writer.label(.block);
        writer.add(.{ .code = ret, .jump_true = 0, .jump_false = 0, .k = snap_size_block });
        return writer.finish();
    }
};

const ldx_ip_header = 0xb1; // BPF_LDX|BPF_B|BPF_MSH: X = 4 * (byte & 15)
const ja = 0x05;
const jeq = 0x15;
const jge = 0x35;
const jset = 0x45;
const ret = 0x06;

const Label = enum { reject, udp, tcp, tftp, data, numbered, answer, http, whole, head, block };

/// Jumps only go forward; each is filled in once the position of its label is known.
const Writer = struct {
    program: Program = .{ .buffer = undefined, .count = 0 },
    places: [@typeInfo(Label).@"enum".field_names.len]?u16 = @splat(null),
    jumps: [instructions_max]struct {
        at: u16,
        to: Label,
        side: enum { true, false, always },
    } = undefined,
    jump_count: u16 = 0,

    fn add(writer: *Writer, instruction: Instruction) void {
        writer.program.buffer[writer.program.count] = instruction;
        writer.program.count += 1;
    }

    fn load(writer: *Writer, size: enum { half, byte }, offset: u32) void {
        writer.add(.{
            .code = if (size == .half) 0x28 else 0x30,
            .jump_true = 0,
            .jump_false = 0,
            .k = offset,
        });
    }

    fn loadBehindIp(writer: *Writer, size: enum { half, byte }, offset: u32) void {
        writer.add(.{
            .code = if (size == .half) 0x48 else 0x50,
            .jump_true = 0,
            .jump_false = 0,
            .k = offset,
        });
    }

    fn when(writer: *Writer, code: u16, k: u32, to: Label) void {
        writer.note(to, .true);
        writer.add(.{ .code = code, .jump_true = 0, .jump_false = 0, .k = k });
    }

    fn unless(writer: *Writer, code: u16, k: u32, to: Label) void {
        writer.note(to, .false);
        writer.add(.{ .code = code, .jump_true = 0, .jump_false = 0, .k = k });
    }

    fn jump(writer: *Writer, to: Label) void {
        writer.note(to, .always);
        writer.add(.{ .code = ja, .jump_true = 0, .jump_false = 0, .k = 0 });
    }

    fn accept(writer: *Writer, to: Label) void {
        writer.jump(to);
    }

    fn note(
        writer: *Writer,
        to: Label,
        side: @FieldType(@typeInfo(@FieldType(Writer, "jumps")).array.child, "side"),
    ) void {
        writer.jumps[writer.jump_count] = .{ .at = writer.program.count, .to = to, .side = side };
        writer.jump_count += 1;
    }

    fn label(writer: *Writer, name: Label) void {
        assert(writer.places[@backingInt(name)] == null);
        writer.places[@backingInt(name)] = writer.program.count;
    }

    fn finish(writer: *Writer) Program {
        for (writer.jumps[0..writer.jump_count]) |pending| {
            const distance = writer.places[@backingInt(pending.to)].? - pending.at - 1;
            const instruction = &writer.program.buffer[pending.at];
            switch (pending.side) {
                .true => instruction.jump_true = @intCast(distance),
                .false => instruction.jump_false = @intCast(distance),
                .always => instruction.k = distance,
            }
        }
        return writer.program;
    }
};

const testing = std.testing;

/// Does what the kernel would do; a load beyond the frame rejects it.
fn run(program: *const Program, frame: []const u8) u32 {
    var a: u32 = 0;
    var x: u32 = 0;
    var at: usize = 0;
    while (true) {
        const step = program.buffer[at];
        at += 1;
        switch (step.code) {
            0x28, 0x48 => {
                const offset = step.k + if (step.code == 0x48) x else 0;
                if (offset + 2 > frame.len) return 0;
                a = std.mem.readInt(u16, frame[offset..][0..2], .big);
            },
            0x30, 0x50 => {
                const offset = step.k + if (step.code == 0x50) x else 0;
                if (offset >= frame.len) return 0;
                a = frame[offset];
            },
            ldx_ip_header => x = @as(u32, frame[step.k] & 0xf) * 4,
            ja => at += step.k,
            jeq => at += if (a == step.k) step.jump_true else step.jump_false,
            jge => at += if (a >= step.k) step.jump_true else step.jump_false,
            jset => at += if (a & step.k != 0) step.jump_true else step.jump_false,
            ret => return step.k,
            else => unreachable,
        }
    }
}

const ethernet = @import("wire").ethernet;

fn verdict(program: *const Program, source: u16, destination: u16, payload: []const u8) !u32 {
    var buffer: [ethernet.frame_size_max]u8 = undefined;
    const frame = try ethernet.emitUdp(
        &buffer,
        .{ .source = .fromInt(2), .destination = .broadcast },
        .{ .ip = .init(10, 0, 0, 9), .port = source },
        .{ .ip = .init(10, 0, 0, 1), .port = destination },
        payload,
    );
    return run(program, frame);
}

test "DHCP is passed complete, TFTP's data in part, and the stream never" {
    const program: Program = .init(.{ .http = 6980 });
    try testing.expectEqual(snap_size_whole, try verdict(&program, 68, 67, "x"));
    try testing.expectEqual(snap_size_whole, try verdict(&program, 67, 68, "x"));
    try testing.expectEqual(snap_size_whole, try verdict(&program, 2000, 4011, "x"));
    try testing.expectEqual(snap_size_head, try verdict(&program, 2000, 69, "\x00\x01file"));
    try testing.expectEqual(snap_size_head, try verdict(&program, 69, 2000, "\x00\x05\x00\x01"));
    const full: [600]u8 = @splat(7);
    for ([_]u16{ 1, 15, 64, 128 }) |block| {
        const data = [_]u8{ 0, 3, @intCast(block >> 8), @truncate(block) } ++ full;
        try testing.expectEqual(snap_size_block, try verdict(&program, 69, 2000, &data));
        const ack = [_]u8{ 0, 4, @intCast(block >> 8), @truncate(block) };
        try testing.expectEqual(snap_size_block, try verdict(&program, 2000, 69, &ack));
    }
    for ([_]u16{ 16, 17, 65 }) |block| {
        const data = [_]u8{ 0, 3, @intCast(block >> 8), @truncate(block) } ++ full;
        try testing.expectEqual(0, try verdict(&program, 69, 2000, &data));
        try testing.expectEqual(snap_size_block, try verdict(&program, 69, 2000, data[0..50]));
    }
    for ([_]u16{ 6910, 53 }) |port|
        try testing.expectEqual(0, try verdict(&program, 2000, port, "x"));
}

test "HTTP segments that open, close or push are passed, and ICMP unreachable" {
    const program: Program = .init(.{ .http = 6980 });
    var buffer: [128]u8 = undefined;
    const payload: [40]u8 = @splat(0);
    const frame = try ethernet.emitUdp(
        &buffer,
        .{ .source = .fromInt(2), .destination = .broadcast },
        .{ .ip = .init(10, 0, 0, 9), .port = 6980 },
        .{ .ip = .init(10, 0, 0, 1), .port = 40000 },
        &payload,
    );
    frame[23] = 6;
    for ([_]u8{ 0x02, 0x12, 0x18, 0x11, 0x04 }) |flags| {
        frame[34 + 13] = flags;
        try testing.expectEqual(snap_size_head, run(&program, frame));
    }
    frame[34 + 13] = 0x10;
    try testing.expectEqual(0, run(&program, frame));
    frame[34 + 13] = 0x18;
    frame[16] = 0xff;
    try testing.expectEqual(0, run(&program, frame));
    frame[34 + 13] = 0x11;
    try testing.expectEqual(snap_size_head, run(&program, frame));
    frame[23] = 1;
    frame[34] = 3;
    try testing.expectEqual(snap_size_head, run(&program, frame));
    frame[34] = 8;
    try testing.expectEqual(0, run(&program, frame));
    frame[12] = 0x86;
    try testing.expectEqual(0, run(&program, frame));
}
