//! The checksums of Btrfs, of its nodes and of the sectors of files.

const std = @import("std");
const base = @import("base");
const Crc32c = @import("../crc32c.zig").Crc32c;

pub const Checksum = enum(u16) {
    crc32c = 0,
    xxhash64 = 1,
    sha256 = 2,
    blake2b = 3,

    const size_max = 32;

    /// Returns null for a number that is not known.
    pub fn of(number: u16) ?Checksum {
        return std.enums.fromInt(Checksum, number);
    }

    /// Bytes.
    pub fn size(checksum: Checksum) u32 {
        return switch (checksum) {
            .crc32c => 4,
            .xxhash64 => 8,
            .sha256, .blake2b => 32,
        };
    }

    /// `stored` has at least `size` bytes.
    pub fn matches(checksum: Checksum, bytes: []const u8, stored: []const u8) bool {
        var computed: [size_max]u8 = undefined;
        switch (checksum) {
            .crc32c => {
                const crc = Crc32c.hash(bytes);
                std.mem.writeInt(u32, computed[0..4], crc, .little);
            },
            .xxhash64 => {
                const hash = std.hash.XxHash64.hash(0, bytes);
                std.mem.writeInt(u64, computed[0..8], hash, .little);
            },
            .sha256 => base.Sha256.hash(bytes, &computed, .{}),
            .blake2b => std.crypto.hash.blake2.Blake2b256.hash(bytes, &computed, .{}),
        }
        return std.mem.eql(u8, computed[0..checksum.size()], stored[0..checksum.size()]);
    }
};

test "each checksum compares as many bytes as it has" {
    for (std.enums.values(Checksum)) |checksum| {
        var stored: [32]u8 = @splat(0);
        try std.testing.expect(!checksum.matches("bootfarm", &stored));
    }
    // CRC-32C of "123456789".
    const check = "\x83\x92\x06\xe3";
    try std.testing.expect(Checksum.crc32c.matches("123456789", check));
    try std.testing.expectEqual(null, Checksum.of(4));
}
