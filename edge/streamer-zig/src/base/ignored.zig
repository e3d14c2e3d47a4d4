//! Counters of ignored input. Invalid input is never an error in core: it is counted under one of
//! these reasons, and the counters are sent with each heartbeat.

const std = @import("std");
const assert = std.debug.assert;

/// Why a packet or request was ignored. The dashboard shows these names; they are never reused.
pub const IgnoreReason = enum(u8) {
    dhcp_truncated,
    dhcp_too_long,
    dhcp_not_dhcp,
    dhcp_not_ethernet,
    dhcp_bad_option,
    dhcp_not_a_request,
    dhcp_bad_client_address,
    dhcp_message_type,
    dhcp_not_a_network_boot,
    dhcp_unknown_device,
    dhcp_other_server,
    dhcp_off,
    dhcp_no_boot_program,
    dhcp_no_free_address,
    dhcp_relayed,
    dhcp_bad_address,
    dhcp_too_many_hops,
    tftp_truncated,
    tftp_too_long,
    tftp_bad_packet,
    tftp_bad_option,
    tftp_not_a_read,
    tftp_not_octet,
    tftp_file_not_found,
    tftp_unknown_transfer,
    tftp_busy,
    tftp_source_limit,
    tftp_stale_ack,
    tftp_repeated_request,
    stream_wrong_size,
    stream_wrong_version,
    stream_reserved_not_zero,
    stream_bad_value,
    stream_wrong_direction,
    stream_stale_cookie,
    stream_stale_hello,
    stream_token_refused,
    stream_version_missing,
    stream_busy,
    stream_unknown_session,
    stream_forged,
    stream_replayed,
    stream_no_cipher,
    stream_bad_range,
    http_bad_request,
    http_not_found,
    http_busy,
    http_slow,
    boot_table_full,
    segment_busy,
    /// Another edge of the site serves it, or should.
    dhcp_other_edge,
    /// The desired state lists it as one that gets no answer.
    dhcp_ignored_device,
    peer_bad_message,
    peer_unknown,
    peer_replayed,
    peer_too_many,
    stream_stale_write,
    stream_no_cache,
    /// A boot script was asked for, or a boot called ready, by an address that may not be the
    /// device's.
    device_unconfirmed,
    stream_identity_refused,
    /// Two machines have its MAC address, and the other one runs.
    stream_mac_in_use,
    /// Unregistered devices begin no more boots now: their part of the table or their rate is used
    /// up.
    unregistered_limit,

    pub const count = @typeInfo(IgnoreReason).@"enum".field_names.len;

    comptime {
        // UPLINK.md: a heartbeat carries at most 64 reasons.
        assert(count <= 64);
    }
};

/// One number per reason. A plain value: reading it costs nothing and copying it copies everything.
pub const IgnoredCounters = struct {
    values: [IgnoreReason.count]u64 = @splat(0),

    pub const Entry = struct { reason: IgnoreReason, count: u64 };

    pub fn add(counters: *IgnoredCounters, reason: IgnoreReason) void {
        counters.values[@backingInt(reason)] += 1;
    }

    pub fn addMany(counters: *IgnoredCounters, reason: IgnoreReason, number: u64) void {
        counters.values[@backingInt(reason)] += number;
    }

    pub fn get(counters: *const IgnoredCounters, reason: IgnoreReason) u64 {
        return counters.values[@backingInt(reason)];
    }

    pub fn total(counters: *const IgnoredCounters) u64 {
        var sum: u64 = 0;
        for (counters.values) |value| sum += value;
        return sum;
    }

    /// Adds another table's counts, for programs that keep one table per socket.
    pub fn merge(counters: *IgnoredCounters, other: *const IgnoredCounters) void {
        for (&counters.values, other.values) |*value, more| value.* += more;
    }

    /// Iterates over the reasons counted at least once, in the order of the enum.
    pub fn iterate(counters: *const IgnoredCounters) Iterator {
        return .{ .counters = counters };
    }

    pub const Iterator = struct {
        counters: *const IgnoredCounters,
        index: u8 = 0,

        pub fn next(iterator: *Iterator) ?Entry {
            while (iterator.index < IgnoreReason.count) {
                defer iterator.index += 1;
                const value = iterator.counters.values[iterator.index];
                if (value == 0) continue;
                return .{ .reason = @fromBackingInt(iterator.index), .count = value };
            }
            return null;
        }
    };

    /// Writes a JSON object of the counted reasons, for `std.json.Stringify`.
    pub fn jsonStringify(counters: IgnoredCounters, json: anytype) !void {
        try json.beginObject();
        var iterator = counters.iterate();
        while (iterator.next()) |entry| {
            try json.objectField(@tagName(entry.reason));
            try json.write(entry.count);
        }
        try json.endObject();
    }
};

const testing = std.testing;

test "each reason is counted by itself and only counted ones are listed" {
    var counters: IgnoredCounters = .{};
    counters.add(.tftp_busy);
    counters.add(.dhcp_truncated);
    counters.add(.tftp_busy);
    var twice = counters;
    twice.merge(&counters);
    try testing.expectEqual(4, twice.get(.tftp_busy));
    try testing.expectEqual(3, counters.total());
    var iterator = counters.iterate();
    const Entry = IgnoredCounters.Entry;
    try testing.expectEqual(Entry{ .reason = .dhcp_truncated, .count = 1 }, iterator.next().?);
    try testing.expectEqual(Entry{ .reason = .tftp_busy, .count = 2 }, iterator.next().?);
    try testing.expectEqual(null, iterator.next());
}

test "the counters of a heartbeat are a JSON object" {
    var counters: IgnoredCounters = .{};
    counters.add(.dhcp_off);
    var buffer: [64]u8 = undefined;
    var writer: std.Io.Writer = .fixed(&buffer);
    try std.json.Stringify.value(counters, .{}, &writer);
    try testing.expectEqualStrings("{\"dhcp_off\":1}", writer.buffered());
}
