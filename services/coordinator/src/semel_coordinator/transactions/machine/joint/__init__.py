"""Joint transactions: many writers that share nothing but a name, and one decision for all.

Theory of operation. Each writer is a producer as any other: its transaction is (producer id,
producer epoch), participants know it by nothing else, and markers, inquiry and outcomes are those
of every transaction. What is joint is only who decides: no writer can end its transaction itself;
one record set ends those of all writers of a version at once, so no reader, no restart and no
inquiry ever finds some of them decided and others not.

A version is open from its first join to its end. The k-th writer to join it gets the k-th producer
id of the transactional id's pool, at that producer's current epoch, which no writer had before. The
state of a version follows from the stored state of the id; `JOINT_TABLE` has the rows.
"""
