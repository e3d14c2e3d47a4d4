//! Keys and hashes of 32 bytes in base64, as the API sends them.

const std = @import("std");

pub const size = std.base64.standard.Encoder.calcSize(32);

pub fn write(key: [32]u8) [size]u8 {
    var text: [size]u8 = undefined;
    _ = std.base64.standard.Encoder.encode(&text, &key);
    return text;
}

pub fn parse(text: []const u8) error{InvalidKey}![32]u8 {
    var key: [32]u8 = undefined;
    const decoder = std.base64.standard.Decoder;
    const bytes = decoder.calcSizeForSlice(text) catch return error.InvalidKey;
    if (bytes != key.len) return error.InvalidKey;
    decoder.decode(&key, text) catch return error.InvalidKey;
    return key;
}
