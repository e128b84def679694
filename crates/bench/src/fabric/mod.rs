//! `tandem bench` of the fabric: tables in the manner of nccl-tests, with peers in the same run.

pub(crate) mod args;
mod array;
mod collective;
mod context;
mod copies;
mod data;
mod inside;
mod meet;
mod nccl;
mod rows;
mod subject;

use crate::plot::Plot;
use crate::rows::Rows;
use args::{FabricBench, Options, Shared, Sweep};
use context::Context;
use data::{Job, EXCHANGE, SEND};
use inside::Who;
use rows::Table;
use std::path::Path;
use subject::{measure, Subject};
use tandem_console::failure::{Failure, Outcome};
use tandem_console::session::Session;
use tandem_console::sizes;
use tandem_fabric::kernels::{Ball, Inside, Scope};
use tandem_fabric::plan::Operation;
use tandem_fabric::topology::wrapped;

/// Makes what is measured, one library after the other, so that only one holds memory at a time.
type Maker<'a> = Box<dyn Fn(&Context) -> Outcome<Option<Box<dyn Subject>>> + 'a>;
type Makers<'a> = Vec<Maker<'a>>;

pub(crate) fn run(session: &Session, what: &FabricBench) -> Outcome {
    match what {
        FabricBench::P2p(options) => planned(session, options, &[], "p2p", SEND, p2p(options)),
        FabricBench::Upload(sweep) => table(session, sweep, None, &[], "upload", SEND, host(true)),
        FabricBench::Download(sweep) => table(session, sweep, None, &[], "download", SEND, host(false)),
        FabricBench::Words(what) => {
            let bytes = 8 << what.log_n;
            let sweep = Sweep { least: bytes, most: bytes, factor: 2, calls: what.calls.clone() };
            session.note(&format!("2^{} words of 64 bits, {}", what.log_n, sizes::write(bytes)));
            table(session, &sweep, None, &[], "words", SEND, between().into_iter().chain(host(true)).collect())
        }
        FabricBench::Put(sweep) => table(session, sweep, None, &[], "put", SEND, inside(false)),
        FabricBench::Get(sweep) => table(session, sweep, None, &[], "get", SEND, inside(true)),
        FabricBench::Pingpong(calls) => {
            // There is one size, and no curve over it.
            let sweep = Sweep { least: 8, most: 8, factor: 2, calls: calls.clone() };
            table(session, &sweep, None, &[], "pingpong", SEND, balls())
        }
        FabricBench::Inside(calls) => {
            let sweep = Sweep { least: 8, most: 8, factor: 2, calls: calls.clone() };
            table(session, &sweep, None, &[], "inside", SEND, meetings())
        }
        FabricBench::Broadcast(shared) => collective(session, shared, "broadcast", Operation::Broadcast),
        FabricBench::Allreduce(shared) => collective(session, shared, "allreduce", Operation::AllReduce),
        FabricBench::Allgather(shared) => collective(session, shared, "allgather", Operation::AllGather),
        FabricBench::Reducescatter(shared) => collective(session, shared, "reducescatter", Operation::ReduceScatter),
        FabricBench::Alltoall(shared) => {
            let job = Operation::AllToAll.into();
            // An array is spread over the whole team.
            let array = |runs| -> Maker<'_> {
                Box::new(
                    move |c| {
                        if c.job.len() < c.team.size() {
                            Ok(None)
                        } else {
                            boxed(array::Assign::new(c, runs)?)
                        }
                    },
                )
            };
            let makers = ours(&shared.options, job).chain([peer(job), array(0), array(2)]).collect();
            planned(session, &shared.options, &shared.among, "alltoall", job, makers)
        }
    }
}

/// The sum of all to the first GPU: `tandem bench reduce --collective`.
pub(crate) fn reduce(session: &Session, shared: &Shared) -> Outcome {
    collective(session, shared, "reduce", Operation::Reduce)
}

fn boxed<S: Subject + 'static>(subject: S) -> Outcome<Option<Box<dyn Subject>>> {
    Ok(Some(Box::new(subject)))
}

fn collective(session: &Session, shared: &Shared, what: &'static str, operation: Operation) -> Outcome {
    let (options, job) = (&shared.options, operation.into());
    planned(session, options, &shared.among, what, job, ours(options, job).chain([peer(job)]).collect())
}

/// As usual, and with each of the choices that were asked for.
fn ours<'a>(options: &'a Options, job: Job) -> impl Iterator<Item = Maker<'a>> {
    let choices = std::iter::once(None).chain(options.tuning.iter().map(Some));
    choices.map(move |choices| -> Maker<'a> { Box::new(move |c| boxed(collective::Ours::new(c, job, choices)?)) })
}

fn inside<'a>(is_get: bool) -> Makers<'a> {
    let maker = |who: Who| -> Maker<'a> {
        Box::new(move |c| {
            // A pretend PE's program is one thread.
            if c.apart().is_some() || who != Who::Thread && !c.team.is_cuda() {
                return Ok(None);
            }
            boxed(inside::Inside::new(c, is_get, who)?)
        })
    };
    // The copy of a whole array that the host asks for, beside those from inside kernels.
    let whole: Maker<'a> = Box::new(move |c| boxed(copies::QueueCopy::new(c, is_get)?));
    Who::ALL.map(maker).into_iter().chain([whole]).collect()
}

fn balls<'a>() -> Makers<'a> {
    let maker = |ball| -> Maker<'a> {
        Box::new(move |c| {
            if c.apart().is_some() || ball != Ball::Signal && !c.team.is_cuda() {
                return Ok(None);
            }
            boxed(inside::PingPong::new(c, ball)?)
        })
    };
    inside::PingPong::ALL.map(maker).into()
}

/// Collectives inside kernels, or inside programs of pretend PEs.
fn meetings<'a>() -> Makers<'a> {
    let one = |what: Inside, scope: Scope| -> Maker<'a> {
        Box::new(move |c| {
            if c.apart().is_some() || scope != Scope::Thread && !c.team.is_cuda() {
                return Ok(None);
            }
            boxed(meet::Meet::new(c, what, scope)?)
        })
    };
    let scopes = [Scope::Thread, Scope::Warp, Scope::Block];
    Inside::ALL.into_iter().flat_map(|what| scopes.map(|scope| one(what, scope))).collect()
}

/// From one GPU to another, by one copy engine.
fn between<'a>() -> [Maker<'a>; 2] {
    [
        Box::new(|c| boxed(copies::QueueCopy::new(c, false)?)),
        Box::new(|c| if c.devices.is_empty() { Ok(None) } else { boxed(copies::MemcpyPeer::new(c)?) }),
    ]
}

fn p2p(options: &Options) -> Makers<'_> {
    let copies = between().into_iter().chain([peer(SEND)]);
    ours(options, SEND).chain(copies).chain(ours(options, EXCHANGE)).chain([peer(EXCHANGE)]).collect()
}

fn peer<'a>(job: Job) -> Maker<'a> {
    Box::new(move |c| Ok(nccl::NcclOp::new(c, job)?.map(|s| Box::new(s) as Box<dyn Subject>)))
}

fn host<'a>(is_upload: bool) -> Makers<'a> {
    let mut makers: Makers<'a> = Vec::new();
    for is_pinned in [true, false] {
        // Pretend PEs know no page-locked memory.
        let fits = move |c: &Context| !is_pinned || !c.devices.is_empty();
        makers.push(Box::new(move |c| {
            if fits(c) {
                boxed(copies::Links::new(c, is_upload, is_pinned, true)?)
            } else {
                Ok(None)
            }
        }));
        makers.push(Box::new(move |c| {
            if fits(c) && c.team.size() > 1 {
                boxed(copies::Links::new(c, is_upload, is_pinned, false)?)
            } else {
                Ok(None)
            }
        }));
        makers.push(Box::new(move |c| {
            if c.devices.is_empty() {
                Ok(None)
            } else {
                boxed(copies::MemcpyHost::new(c, is_upload, is_pinned)?)
            }
        }));
    }
    makers
}

fn planned(
    session: &Session,
    options: &Options,
    among: &[usize],
    what: &'static str,
    job: Job,
    makers: Makers<'_>,
) -> Outcome {
    table(session, &options.sweep, options.nccl.as_deref(), among, what, job, makers)
}

/// Measures every size of every subject, and writes what was asked for.
fn table(
    session: &Session,
    sweep: &Sweep,
    nccl: Option<&Path>,
    among: &[usize],
    what: &'static str,
    job: Job,
    makers: Makers<'_>,
) -> Outcome {
    if sweep.least > sweep.most {
        let (least, most) = (sizes::write(sweep.least), sizes::write(sweep.most));
        return Err(Failure::input(format!("--min-bytes {least} is more than --max-bytes {most}")));
    }
    let (x, y) = match what {
        "pingpong" => ("bytes", "time of a round trip, us"),
        "inside" => ("bytes", "time of a collective, us"),
        _ => ("size, bytes", "rate (algbw), GB/s"),
    };
    let is_one_size = x == "bytes";
    let mut plot = Plot::open(&sweep.calls.plot, x, y)?;
    let least_pes = if matches!(what, "upload" | "download") { 1 } else { 2 };
    let context = session.trace.step("open team", || Context::open(session, sweep.most, nccl, least_pes, among))?;
    let names = context.names();
    let rows = Rows::open(session, sweep.calls.json.as_deref())?;
    let note = |text: &str| session.note(&wrapped(text, 2));
    note(&format!(
        "{what}, {names}: time is that of one of many queued calls, alone is from one call until it is complete everywhere; \
         rates (algbw, and busbw where it differs) are of the former where there is one; results checked where wrong has a number"
    ));
    if let Some(why) = context.apart() {
        note(&format!(
            "{why}: copies between them pass through the host, and what kernels of one do in the memory of another is left out"
        ));
    }
    if !among.is_empty() {
        note(&format!("the job is that of PEs {}; the others only forward", list(among)));
    }
    let mut table = Table { what, factor: job.bus_factor(context.job.len()), among: among.to_vec(), rows: Vec::new() };
    // Whatever ends the measuring, what has been measured is told, and elements that were wrong are the verdict.
    let measured = measure_all(session, sweep, &context, makers, &rows, &mut table);
    rows.text(&table.text());
    match table.wrong() {
        0 => measured?,
        wrong => return Err(Failure::device(format!("{wrong} elements were wrong; see the table"))),
    }
    for row in &table.rows {
        plot.add(&row.library, row.bytes as f64, if is_one_size { row.microseconds() } else { row.algbw() });
    }
    plot.write(&format!("{what}, {names}"))
}

/// Numbers as text.
fn list(numbers: &[usize]) -> String {
    numbers.iter().map(usize::to_string).collect::<Vec<_>>().join(", ")
}

/// Adds a row to the table for every size of every subject.
fn measure_all(
    session: &Session,
    sweep: &Sweep,
    context: &Context,
    makers: Makers<'_>,
    rows: &Rows<'_>,
    table: &mut Table,
) -> Outcome {
    let what = table.what;
    let names = context.names();
    for make in makers {
        let Some(mut subject) = make(context)? else { continue };
        for bytes in sizes::all(sweep.least, sweep.most, sweep.factor) {
            tandem_engine::Progress::start(&session.bars, what, 0);
            let row =
                session.trace.step(what, || measure(&mut *subject, bytes, sweep.calls.warmup, sweep.calls.iters))?;
            session.bars.clear();
            if let Some(row) = row {
                let line = table.json(&row);
                table.rows.push(row);
                rows.append_row(&names, line)?;
            }
            tandem_console::interrupt::check()?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use args::Calls;

    /// Two of four PEs, the root not the first of the team: every operation has right results, and the rate of its plan.
    #[test]
    fn some_of_the_pes_are_measured_with_the_others_as_helpers() {
        let context = Context { job: vec![2, 0], ..context::tests::pretend_pes(4, 1 << 14) };
        for (operation, _) in Operation::ALL {
            if matches!(operation, Operation::Upload | Operation::Download) {
                continue;
            }
            let mut subject = collective::Ours::new(&context, operation.into(), None).ok().unwrap();
            let row = measure(&mut subject, 1 << 16, 1, 2).ok().flatten().unwrap();
            assert_eq!((row.wrong, row.bytes), (Some(0), 1 << 16), "{operation:?}");
            assert!(row.planned.is_some_and(|rate| rate > 100.0), "{operation:?}: {row:?}");
        }
    }

    /// Everything that copies has its rows, with no element wrong, where the driver refuses a pair; kernels are left out.
    #[test]
    fn a_refused_pair_is_measured_through_the_host() {
        let (least, most, factor, iters, warmup) = (1 << 16, 1 << 16, 4, 2, 1);
        let calls = Calls { iters, warmup, json: None, plot: Default::default() };
        let sweep = Sweep { least, most, factor, calls };
        let options = Options { sweep, nccl: None, tuning: Vec::new() };
        let context = context::tests::refused(2, 1 << 14);
        let rows = |makers: Makers<'_>| -> Vec<Option<rows::Row>> {
            let made = makers.iter().filter_map(|make| make(&context).ok().unwrap());
            made.map(|mut subject| measure(&mut *subject, 1 << 16, 1, 2).ok().unwrap()).collect()
        };
        let array = |runs| -> Maker<'_> { Box::new(move |c| boxed(array::Assign::new(c, runs)?)) };
        let job = Operation::AllReduce.into();
        let all = [
            (p2p(&options), 3),
            (host(true), 2),
            (inside(false), 1),
            (inside(true), 1),
            (balls(), 0),
            (meetings(), 0),
            (ours(&options, job).collect(), 1),
            (vec![array(0), array(2)], 2),
        ];
        for (i, (makers, wanted)) in all.into_iter().enumerate() {
            let rows = rows(makers);
            assert_eq!(rows.len(), wanted, "{i}: {rows:?}");
            assert!(rows.iter().all(|row| row.as_ref().is_some_and(|row| row.wrong == Some(0))), "{i}: {rows:?}");
        }
    }
}
