//! Accounts for the link's time during a replay: how long the link was not full, and the cause. A
//! device sees only its requests and what arrived; a link with a known RTT is idle while fewer
//! bytes are in flight than pass it in one RTT.

const std = @import("std");
const core = @import("core");
const ReadAhead = core.profile.ReadAhead;
const StreamClient = core.stream.Client;

pub const LinkAccount = struct {
    /// Bytes of data that pass the link in a microsecond, in thousandths.
    rate: u64,
    since_us: u64 = 0,
    cause: Cause = .profile,
    spent_us: std.EnumArray(Cause, u64) = .initFill(0),

    pub const Cause = enum {
        /// Enough is in flight to fill the link: any delay is the link's, or the edge's.
        full,
        /// The profile has not arrived.
        profile,
        /// Requests are pending, and cwnd is too small for them.
        window,
        /// ... and cwnd has space for them, but pacing delays them.
        pacing,
        /// Retransmissions are pending.
        repeat,
        /// The profile has more, and read-ahead does not request it.
        ahead,
        /// Everything that the system and the profile need is in flight.
        wanted,
    };

    pub fn init(mbit_per_second: u32) LinkAccount {
        return .{ .rate = @as(u64, mbit_per_second) * 125 };
    }

    /// Called after everything that may be sent was sent.
    pub fn note(
        account: *LinkAccount,
        now_us: u64,
        client: *const StreamClient,
        ahead: *const ReadAhead,
    ) void {
        if (account.since_us > 0)
            account.spent_us.getPtr(account.cause).* += now_us -| account.since_us;
        account.since_us = now_us;
        account.cause = account.causeNow(client, ahead);
    }

    fn causeNow(
        account: *const LinkAccount,
        client: *const StreamClient,
        ahead: *const ReadAhead,
    ) Cause {
        const window = &client.window;
        if (window.in_flight_bytes * 1000 >= account.rate * window.roundTrip() and
            window.in_flight_bytes > 0) return .full;
        for (client.reads) |*read| {
            if (read.state == .in_flight and read.retransmit != null) return .repeat;
        }
        for (client.reads) |*read| {
            if (read.state != .queued) continue;
            return if (window.credit <= 0 and
                window.in_flight_bytes + read.buffer.len <= window.cwnd_bytes) .pacing else .window;
        }
        if (ahead.state == .fetching) return .profile;
        return if (ahead.state == .reading and ahead.next < ahead.count) .ahead else .wanted;
    }
};
