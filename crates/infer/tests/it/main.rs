mod expressions;
