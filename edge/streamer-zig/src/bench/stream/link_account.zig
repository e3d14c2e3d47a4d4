//! Where the time of a replay goes: how long less was asked for than fills the link, and what held the rest back. The device sees only
//! what it has asked for and what has come; a link whose round trip is known is idle when less is under way than passes it in that time.

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
        /// As much is under way as fills the link: what is late is late there, or at the edge.
        full,
        /// The profile has not come.
        profile,
        /// Something is to be asked for, and the window is as small as that.
        window,
        /// ... and there is room for it in the window, but not yet by pacing.
        pacing,
        /// Something is to be asked again.
        repeat,
        /// The profile has more, and read-ahead does not ask for it.
        ahead,
        /// All that the system and the profile want is under way.
        wanted,
    };

    pub fn init(mbit_per_second: u32) LinkAccount {
        return .{ .rate = @as(u64, mbit_per_second) * 125 };
    }

    /// When all has been sent that may be sent.
    pub fn note(account: *LinkAccount, now_us: u64, client: *const StreamClient, ahead: *const ReadAhead) void {
        if (account.since_us > 0) account.spent_us.getPtr(account.cause).* += now_us -| account.since_us;
        account.since_us = now_us;
        account.cause = account.causeNow(client, ahead);
    }

    fn causeNow(account: *const LinkAccount, client: *const StreamClient, ahead: *const ReadAhead) Cause {
        const window = &client.window;
        if (window.in_flight_bytes * 1000 >= account.rate * window.roundTrip() and window.in_flight_bytes > 0) return .full;
        for (client.reads) |*read| {
            if (read.state == .in_flight and read.retransmit != null) return .repeat;
        }
        for (client.reads) |*read| {
            if (read.state != .queued) continue;
            return if (window.credit <= 0 and window.in_flight_bytes + read.buffer.len <= window.cwnd_bytes) .pacing else .window;
        }
        if (ahead.state == .fetching) return .profile;
        return if (ahead.state == .reading and ahead.next < ahead.count) .ahead else .wanted;
    }
};
