const std = @import("std");
const base = @import("base");
const wire = @import("wire").stream;
const stream_seal = @import("seal.zig");
const testing = std.testing;

const ciphers = [_]wire.Cipher{ .aegis_128l, .chacha20_poly1305 };

test "what one side sealed the other opens, and nothing else" {
    for (ciphers) |cipher| {
        const key: stream_seal.Key = .{ .cipher = cipher, .bytes = @splat(7) };
        var buffer: [200]u8 = @splat(0);
        for (buffer[0..180], 0..) |*byte, index| byte.* = @truncate(index);
        const before = buffer;
        const sealed = stream_seal.seal(&key, 0x0102030405060708, &buffer, 180, 16);
        try testing.expectEqual(196, sealed.len);
        try testing.expectEqual(0x0102030405060708, stream_seal.counterOf(sealed));
        try testing.expect(!std.mem.eql(u8, before[16..180], sealed[16..180]));
        var out: [200]u8 = undefined;
        const opened = stream_seal.open(&key, sealed, 16, &out).?;
        try testing.expectEqualSlices(u8, before[0..8], opened[0..8]);
        try testing.expectEqualSlices(u8, before[16..180], opened[16..]);
        // Every bit counts, including the counter's.
        var forged: [196]u8 = sealed[0..196].*;
        for (0..forged.len * 8) |bit| {
            const flip = @as(u8, 1) << @intCast(bit % 8);
            forged[bit / 8] ^= flip;
            try testing.expectEqual(null, stream_seal.open(&key, &forged, 16, &out));
            forged[bit / 8] ^= flip;
        }
        for (0..196) |size|
            try testing.expectEqual(null, stream_seal.open(&key, forged[0..size], 16, &out));
        var other = key;
        other.bytes[15] ^= 1;
        try testing.expectEqual(null, stream_seal.open(&other, sealed, 16, &out));
    }
}

test "sealing a fragment in one pass equals sealing its packet in place" {
    for (ciphers) |cipher| {
        const key: stream_seal.Key = .{ .cipher = cipher, .bytes = @splat(9) };
        const payload: [100]u8 = @splat(3);
        const header = wire.dataHeader(5, 6, 7);
        var out: [200]u8 = undefined;
        const at_once = stream_seal.sealFragment(&key, 77, &header, &payload, &out);
        var in_place: [200]u8 = undefined;
        in_place[0..116].* = header ++ payload;
        try testing.expectEqualSlices(u8, stream_seal.seal(&key, 77, &in_place, 116, 16), at_once);
    }
}

test "a fragment opens into its final place, and a modified one does not" {
    for (ciphers) |cipher| {
        const key: stream_seal.Key = .{ .cipher = cipher, .bytes = @splat(9) };
        var payload: [100]u8 = undefined;
        for (&payload, 0..) |*byte, index| byte.* = @truncate(index * 7);
        var sealed: [132]u8 = undefined;
        _ = stream_seal.sealFragment(&key, 77, &wire.dataHeader(5, 6, 7), &payload, &sealed);
        var out: [102]u8 = @splat(1);
        try testing.expect(stream_seal.openFragment(&key, &sealed, out[1..101]));
        try testing.expectEqualSlices(u8, &[_]u8{1} ++ payload ++ &[_]u8{1}, &out);
        for (0..sealed.len * 8) |bit| {
            const flip = @as(u8, 1) << @intCast(bit % 8);
            sealed[bit / 8] ^= flip;
            try testing.expect(!stream_seal.openFragment(&key, &sealed, out[1..101]));
            sealed[bit / 8] ^= flip;
        }
        try testing.expectEqual([2]u8{ 1, 1 }, [2]u8{ out[0], out[101] });
        // The sealed packet is unchanged.
        try testing.expect(stream_seal.openFragment(&key, &sealed, out[1..101]));
    }
}

fn helloOf(public: [32]u8) wire.Hello {
    return .{
        .client_nonce = @splat(1),
        .kind = .token,
        .ciphers = .{ .aegis_128l = true, .chacha20_poly1305 = true },
        .packet_size_max = 1472,
        .boot_id = @splat(2),
        .client_public = public,
        .proof = @splat(3),
    };
}

test "both sides agree on keys, and on others with another secret, HELLO or cipher" {
    const device: stream_seal.KeyPair = .init(@splat(0x41));
    const edge: stream_seal.KeyPair = .init(@splat(0x42));
    const hello = helloOf(device.public);
    const agreement: stream_seal.Agreement = .{
        .hello = &hello,
        .edge_public = &edge.public,
        .cipher = .aegis_128l,
        .secret = "0123456789abcdef",
    };
    const at_device = stream_seal.agree(agreement, device.secret, edge.public).?;
    const at_edge = stream_seal.agree(agreement, edge.secret, device.public).?;
    try testing.expectEqualDeep(at_device, at_edge);
    try testing.expect(!std.mem.eql(u8, &at_device.from_device.bytes, &at_device.from_edge.bytes));
    // The cookie is not covered: it arrives in between.
    var with_cookie = hello;
    with_cookie.cookie = @splat(8);
    var same = agreement;
    same.hello = &with_cookie;
    try testing.expectEqualDeep(at_device, stream_seal.agree(same, edge.secret, device.public).?);
    var other_hello = hello;
    other_hello.ciphers.aegis_128l = false;
    var others: [3]stream_seal.Agreement = @splat(agreement);
    others[0].secret = "0123456789abcdeg";
    others[1].hello = &other_hello;
    others[2].cipher = .chacha20_poly1305;
    for (others) |other| {
        const keys = stream_seal.agree(other, edge.secret, device.public).?;
        try testing.expect(!std.mem.eql(u8, &at_device.from_edge.bytes, &keys.from_edge.bytes));
    }
    // The point 0 gives the secret 0 for any other key.
    try testing.expectEqual(null, stream_seal.agree(agreement, edge.secret, @splat(0)));
}

test "a packet is accepted once, however late within the window, and not behind it" {
    var window: stream_seal.ReplayWindow(128) = .{};
    var model: std.AutoHashMapUnmanaged(u64, void) = .empty;
    defer model.deinit(testing.allocator);
    var prng: base.Prng = .init(11);
    var newest: u64 = 1 << 40;
    for (0..20_000) |_| {
        const step: u64 = if (prng.chance(1, 50)) 500 else prng.below(3);
        const counter = if (prng.chance(1, 2)) newest + step else newest -| prng.below(160);
        const is_behind = window.is_used and counter + 128 <= window.newest;
        const expected = !is_behind and !model.contains(counter);
        try testing.expectEqual(expected, window.isNew(counter));
        if (!expected) continue;
        window.note(counter);
        try model.put(testing.allocator, counter, {});
        newest = @max(newest, counter);
    }
}

test "the better common cipher is used, and clear text only if both sides want it" {
    const all: wire.Ciphers = .{ .aegis_128l = true, .chacha20_poly1305 = true };
    try testing.expectEqual(.aegis_128l, stream_seal.chooseCipher(all, all));
    try testing.expectEqual(.chacha20_poly1305, stream_seal.chooseCipher(all, .{
        .chacha20_poly1305 = true,
    }));
    try testing.expectEqual(
        .aegis_128l,
        stream_seal.chooseCipher(.{ .clear = true, .aegis_128l = true }, all),
    );
    try testing.expectEqual(
        .aegis_128l,
        stream_seal.chooseCipher(all, .{ .clear = true, .aegis_128l = true }),
    );
    try testing.expectEqual(
        .clear,
        stream_seal.chooseCipher(.{ .clear = true }, .{ .clear = true, .aegis_128l = true }),
    );
    try testing.expectEqual(null, stream_seal.chooseCipher(.{ .clear = true }, all));
}
